import type { ChainRef } from '../apply/change.ts';

/** Is told what may no longer be as we left it. */
export interface Suspects {
  /** Somebody touched this chain: made, changed or deleted it. */
  suspect(chain: ChainRef): void;
  /** Somebody may have touched anything. */
  suspectAll(): void;
}
