import type { ChainRef } from '../apply/change.ts';
import type { TableName } from '../chains.ts';

/** Is told what may no longer be as we left it. */
export interface Suspects {
  /** Somebody touched this chain: made, changed or deleted it. */
  suspect(chain: ChainRef): void;
  /** Somebody deleted this table, or may have touched all of it. */
  suspectTable(table: TableName): void;
  /** Somebody may have touched anything. */
  suspectAll(): void;
}
