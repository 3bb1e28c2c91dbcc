import type { IpFamily } from '@switchyard/core';
import type { IptablesVariant, SaveReader } from '@switchyard/netfilter/iptables';
import type { RuleText, TableName } from '../../render/chains.ts';

/** Outcome of one `iptables-restore`. */
export type RestoreResult =
  | { readonly status: 'done' }
  /** Nothing of the table that was refused is written; tables before it in the text are. */
  | {
      readonly status: 'refused';
      /** Line named by iptables, from 1; COMMIT for each refusal of the kernel in legacy. Undefined when it named none. */
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
  /** Streams one table. Rejects with `UnreadableTableError` where nft wrote into it what iptables cannot express. */
  read(table: TableName, reader: SaveReader, signal: AbortSignal): Promise<void>;
  /** Rules of one chain with counters; undefined when it is missing or iptables cannot express it. */
  list(table: TableName, chain: string, signal: AbortSignal): Promise<readonly CountedRule[] | undefined>;
  /** `iptables-restore --noflush`; waits some seconds for the lock. Rejects where no text would be taken. */
  restore(text: string | Iterable<string>, signal: AbortSignal): Promise<RestoreResult>;
}
