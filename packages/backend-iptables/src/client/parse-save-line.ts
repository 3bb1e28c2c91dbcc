import type { TableReader } from './iptables-client.ts';
import { detached } from '@switchyard/host';

/** What reading one table of `iptables-save` came to. */
export interface SaveOutcome {
  /** The text reached its end: what came is the whole table. */
  isComplete: boolean;
  /** iptables-nft will not read the table, because nft wrote into it what iptables cannot express. */
  isIncompatible: boolean;
}

/** Reads the lines of one table of `iptables-save`, with counters (`-c`) or without, into a reader. */
export function saveLineReader(reader: TableReader): { take(line: string): void; readonly outcome: SaveOutcome } {
  const outcome: SaveOutcome = { isComplete: false, isIncompatible: false };
  let chain = '';
  const take = (line: string): void => {
    switch (line[0]) {
      case ':': {
        const [name = '', policy = '-'] = line.slice(1).split(' ', 2);
        reader.chain(name, policy);
        return;
      }
      case '-':
      case '[': {
        const rule = parseRule(line);
        if (rule === undefined) return;
        // Rules of a chain mostly come one after another. Who keeps the name is not to keep the line.
        if (rule.chain !== chain) chain = detached(rule.chain);
        reader.rule(chain, rule.rule, rule.packets, rule.bytes);
        return;
      }
      case 'C':
        outcome.isComplete = true;
        return;
      case '#':
        if (/^# Table .* is incompatible/.test(line)) outcome.isIncompatible = true;
        return;
      default:
    }
  };
  return { take, outcome };
}

interface SavedRule {
  readonly chain: string;
  readonly rule: string;
  readonly packets: number;
  readonly bytes: number;
}

/** `[5:300] -A CHAIN rule`, or the same without counters. */
function parseRule(line: string): SavedRule | undefined {
  const counters = line[0] === '[' ? /^\[(\d+):(\d+)\] /.exec(line) : null;
  const start = counters === null ? 0 : counters[0].length;
  if (!line.startsWith('-A ', start)) return undefined;
  const space = line.indexOf(' ', start + 3);
  const end = space < 0 ? line.length : space;
  return {
    chain: line.slice(start + 3, end),
    rule: line.slice(end + 1).trimEnd(), // 1.8.7 leaves a blank where a rule has no target
    packets: Number(counters?.[1] ?? 0),
    bytes: Number(counters?.[2] ?? 0),
  };
}
