import { detached } from './line-splitter.ts';

/** One rule of `iptables-save`. */
export interface IptablesRule {
  /** The chain it stands in. */
  readonly chain: string;
  /**
   * What stands behind `-A CHAIN `, exactly as printed: behind `-D CHAIN ` it deletes the rule. Empty in chains that somebody
   * made: there may be a hundred thousand such rules, and they go with their chains.
   */
  readonly spec: string;
  /** The chain or target behind `-j` or `-g`; empty for a rule that only counts. */
  readonly target: string;
}

/** One table of `iptables-save`. */
export interface IptablesTable {
  /** `nat`, `filter`, `mangle`, `raw`, `security`. */
  readonly name: string;
  /** Each chain and its policy; `-` for a chain that somebody made. */
  readonly chains: ReadonlyMap<string, string>;
  readonly rules: readonly IptablesRule[];
}

/** What `iptables-save` printed. */
export interface IptablesSave {
  readonly tables: readonly IptablesTable[];
  /** Tables that iptables-nft will not touch, because nft wrote into them what iptables cannot express. */
  readonly incompatible: readonly string[];
}

interface OpenTable {
  readonly name: string;
  readonly chains: Map<string, string>;
  readonly rules: IptablesRule[];
}

/** Reads the text of `iptables-save` or `ip6tables-save` of either variant. Lines it does not know are left out. */
export function parseIptablesSave(text: string): IptablesSave {
  const parser = new SaveParser();
  for (const line of text.split('\n')) parser.line(line);
  return parser.save;
}

/** Reads the same line by line; the text itself need not stand in memory. */
export class SaveParser {
  readonly #tables: IptablesTable[] = [];
  readonly #incompatible: string[] = [];
  /** One text for each name, whoever holds it. */
  readonly #names = new Map<string, string>();
  #open: OpenTable | undefined;

  /** What was read so far. */
  get save(): IptablesSave {
    return { tables: this.#tables, incompatible: this.#incompatible };
  }

  line(line: string): void {
    if (line.startsWith('*')) this.#open = { name: line.slice(1).trim(), chains: new Map(), rules: [] };
    else if (line.startsWith('#')) {
      const table = /^# Table [`'](\w+)' is incompatible/.exec(line)?.[1];
      if (table !== undefined) this.#incompatible.push(table);
    } else if (line === 'COMMIT') {
      if (this.#open !== undefined) this.#tables.push(this.#open);
      this.#open = undefined;
    } else if (this.#open !== undefined) this.#readLine(line, this.#open);
  }

  #readLine(line: string, { chains, rules }: OpenTable): void {
    if (line.startsWith(':')) {
      const [name = '', policy = '-'] = line.slice(1).split(' ');
      chains.set(this.#name(name), policy);
      return;
    }
    // With -c, counters stand in front.
    const match = /^(?:\[\d+:\d+\] )?-A (\S+) ?(.*)$/.exec(line);
    if (match === null) return;
    const [, chain = '', spec = ''] = match;
    const isMade = chains.get(chain) === '-';
    rules.push({ chain: this.#name(chain), spec: isMade ? '' : spec, target: this.#name(targetOf(spec)) });
  }

  #name(text: string): string {
    const known = this.#names.get(text);
    if (known !== undefined) return known;
    const own = detached(text);
    this.#names.set(own, own);
    return own;
  }
}

/** A comment may hold anything, ` -j ` too: what is quoted is skipped. */
function targetOf(spec: string): string {
  for (const token of spec.matchAll(/"(?:[^"\\]|\\.)*"|(?:^|\s)-(?:j|g|-jump|-goto) (\S+)/g)) {
    if (token[1] !== undefined) return token[1];
  }
  return '';
}
