import type { TableName } from '../chains.ts';

/** Is told what may no longer be as we left it. */
export interface Suspects {
  /** Somebody touched this chain: made, changed or deleted it. */
  suspect(table: TableName, chain: string): void;
  /** Somebody may have touched anything. */
  suspectAll(): void;
}
