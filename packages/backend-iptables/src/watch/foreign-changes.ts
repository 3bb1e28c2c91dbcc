import type { ChainRef } from '../kernel/apply/change.ts';
import type { TableName } from '../render/chains.ts';

/** Receives foreign changes of chains. */
export interface ForeignChanges {
  /** Another process made, changed or deleted this chain. */
  noteChain(chain: ChainRef): void;
  /** Another process deleted this table, or may have changed all of it. */
  noteTable(table: TableName): void;
  /** Another process may have changed anything. */
  noteAll(): void;
}
