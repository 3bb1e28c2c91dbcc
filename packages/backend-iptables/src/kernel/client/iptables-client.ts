import type { IpFamily } from '@switchyard/core';
import type { IptablesVariant, SaveReader } from '@switchyard/netfilter/iptables';
import type { RuleText, TableName } from '../../render/chains.ts';

/** Outcome of one `iptables-restore`. */
export type RestoreResult =
  | { readonly status: 'done' }
  /** Nothing of the table that was refused is written; tables before it in the text are. */
  | {
      readonly status: 'refused';
      /**
       * The line that iptables named, 1 being the first; tables before it are written. The line of COMMIT when iptables names no other
       * one, as legacy does for every refusal of the kernel. Undefined when iptables named none.
       */
      readonly line: number | undefined;
      /** Another process held the lock for the whole wait, or changed the rules at the same time: a retry may succeed. */
      readonly isTransient: boolean;
      readonly error: Error;
    };

/** One rule and how often it matched. */
export interface CountedRule {
  readonly rule: RuleText;
  readonly packets: number;
  readonly bytes: number;
}

/** The iptables programs of one family and variant. Rejects with `HostError` where a program cannot do its work at all. */
export interface IptablesClient {
  readonly ipFamily: IpFamily;
  readonly variant: IptablesVariant;
  /** Such as `1.8.9`. */
  readonly version: string;
  /**
   * Reads one table as a stream: a big one never stands in memory as a whole. Rejects with `UnreadableTableError` where nft
   * wrote into it what iptables cannot express; its single chains can still be listed and written.
   */
  read(table: TableName, reader: SaveReader, signal: AbortSignal): Promise<void>;
  /**
   * The rules of one chain with counters; undefined when there is no such chain, or iptables cannot express what is in it.
   * Cheap with the nft variant; legacy reads the whole table in the kernel, but prints this chain only.
   */
  list(table: TableName, chain: string, signal: AbortSignal): Promise<readonly CountedRule[] | undefined>;
  /**
   * `iptables-restore --noflush` of a text, whole or in pieces that end anywhere; waits for the lock for some seconds. Rejects
   * where no text would be taken: rights or the kernel's tables are missing, or the program did not end.
   */
  restore(text: string | Iterable<string>, signal: AbortSignal): Promise<RestoreResult>;
}
