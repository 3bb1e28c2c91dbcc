import type { IpFamily } from '@switchyard/core';
import type { IptablesVariant } from '@switchyard/host';
import type { RuleText, TableName } from '../chains.ts';

/** What became of one `iptables-restore`. */
export type RestoreResult =
  | { readonly status: 'done' }
  /** Nothing of the table that was refused is written; tables before it in the text are. */
  | {
      readonly status: 'refused';
      /** 1 is the first line of the text; undefined when iptables named none. */
      readonly line: number | undefined;
      /** Somebody else held the lock all the time, or changed the rules meanwhile: worth another try. */
      readonly isTransient: boolean;
      readonly error: Error;
    };

/** Is told what a table holds, in the order in which iptables prints it: all chains, then all rules. */
export interface TableReader {
  /** `policy` is `-` for a chain that somebody made. */
  chain(name: string, policy: string): void;
  /** Packets and bytes are 0 where counters were not asked for. */
  rule(chain: string, rule: RuleText, packets: number, bytes: number): void;
}

/** The iptables programs of one family and variant. Rejects with `HostError` where a program cannot do its work at all. */
export interface IptablesClient {
  readonly ipFamily: IpFamily;
  readonly variant: IptablesVariant;
  /** Such as `1.8.9`. */
  readonly version: string;
  /** Reads one table as a stream: a big one never stands in memory as a whole. */
  read(table: TableName, reader: TableReader, signal: AbortSignal): Promise<void>;
  /** The rules of one chain with counters; undefined when there is no such chain. Cheap with the nft variant only. */
  list(
    table: TableName,
    chain: string,
    signal: AbortSignal,
  ): Promise<readonly { readonly rule: RuleText; readonly packets: number; readonly bytes: number }[] | undefined>;
  /** `iptables-restore --noflush` of a text, whole or in pieces; waits for the lock. */
  restore(text: string | Iterable<string>, signal: AbortSignal): Promise<RestoreResult>;
}
