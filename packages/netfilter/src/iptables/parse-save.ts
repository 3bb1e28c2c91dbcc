import { detached } from './line-splitter.ts';

/** One rule of `iptables-save`. */
export interface IptablesRule {
  /** The chain it stands in. */
  readonly chain: string;
  /** Text behind `-A CHAIN `, as printed. Empty in chains that are not built in: there may be 100,000, deleted with their chains. */
  readonly spec: string;
  /** The chain or target behind `-j` or `-g`; empty for a rule that only counts. */
  readonly target: string;
}

/** One table of `iptables-save`. */
export interface IptablesTable {
  /** `nat`, `filter`, `mangle`, `raw`, `security`. */
  readonly name: string;
  /** Each chain and its policy; `-` for a chain that is not built in. */
  readonly chains: ReadonlyMap<string, string>;
  readonly rules: readonly IptablesRule[];
}

/** Output of `iptables-save`. */
export interface IptablesSave {
  readonly tables: readonly IptablesTable[];
  /** Tables that iptables-nft will not touch, because nft wrote into them what iptables cannot express. */
  readonly incompatible: readonly string[];
}

/** Receives the lines of `iptables-save` in their order: each table with its chains, then its rules. */
export interface SaveReader {
  table?(name: string): void;
  /** `policy` is `-` for a chain that is not built in. */
  chain(name: string, policy: string): void;
  /** `rule` is the text behind `-A CHAIN `. Packets and bytes are 0 in a text without counters. */
  rule(chain: string, rule: string, packets: number, bytes: number): void;
  /** The table ended, and is complete. */
  commit?(): void;
}

/** Result of reading a text. */
export interface SaveOutcome {
  /** The text reached the end of a table. */
  isComplete: boolean;
  /** See `IptablesSave`. */
  readonly incompatible: string[];
}

/** Reads the lines of `iptables-save` or `ip6tables-save` of either variant, with counters (`-c`) or without. Skips unknown lines. */
export function saveLineReader(reader: SaveReader): { take(line: string): void; readonly outcome: SaveOutcome } {
  const outcome: SaveOutcome = { isComplete: false, incompatible: [] };
  let chain = '';
  const take = (line: string): void => {
    switch (line[0]) {
      case '*':
        reader.table?.(line.slice(1).trim());
        return;
      case ':': {
        const [name = '', policy = '-'] = line.slice(1).split(' ', 2);
        reader.chain(name, policy);
        return;
      }
      case '-':
      case '[': {
        const rule = parseRule(line);
        if (rule === undefined) return;
        // Rules of a chain mostly come one after another. A kept name must not keep the line.
        if (rule.chain !== chain) chain = detached(rule.chain);
        reader.rule(chain, rule.rule, rule.packets, rule.bytes);
        return;
      }
      case 'C':
        outcome.isComplete = true;
        reader.commit?.();
        return;
      case '#': {
        const table = /^# Table [`'](\w+)' is incompatible/.exec(line)?.[1];
        if (table !== undefined) outcome.incompatible.push(table);
        return;
      }
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

/** Collects the tables from lines; the text itself need not stand in memory. `save` grows with each table that ends. */
export function saveCollector(): { take(line: string): void; readonly save: IptablesSave } {
  const tables: IptablesTable[] = [];
  /** One text for each name. */
  const names = new Map<string, string>();
  const shared = (text: string): string => {
    const known = names.get(text);
    if (known !== undefined) return known;
    const own = detached(text);
    names.set(own, own);
    return own;
  };
  let open: { name: string; chains: Map<string, string>; rules: IptablesRule[] } | undefined;
  const { take, outcome } = saveLineReader({
    table: (name) => (open = { name, chains: new Map(), rules: [] }),
    chain: (name, policy) => open?.chains.set(shared(name), policy),
    rule: (chain, rule) => {
      const spec = open?.chains.get(chain) === '-' ? '' : rule;
      open?.rules.push({ chain: shared(chain), spec, target: shared(targetOf(rule)) });
    },
    commit: () => {
      if (open !== undefined) tables.push(open);
      open = undefined;
    },
  });
  return { take, save: { tables, incompatible: outcome.incompatible } };
}

/** Skips quoted text: a comment may contain ` -j `. */
function targetOf(spec: string): string {
  for (const token of spec.matchAll(/"(?:[^"\\]|\\.)*"|(?:^|\s)-(?:j|g|-jump|-goto) (\S+)/g)) {
    if (token[1] !== undefined) return token[1];
  }
  return '';
}

/** Reads the whole text of `iptables-save` or `ip6tables-save`. */
export function parseIptablesSave(text: string): IptablesSave {
  const { take, save } = saveCollector();
  for (const line of text.split('\n')) take(line);
  return save;
}
