/** One rule of `iptables-save`. */
export interface IptablesRule {
  /** The chain it stands in. */
  readonly chain: string;
  /** What stands behind `-A CHAIN `, exactly as printed: behind `-D CHAIN ` it deletes the rule. */
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
  const tables: IptablesTable[] = [];
  const incompatible: string[] = [];
  let open: OpenTable | undefined;
  for (const line of text.split('\n')) {
    if (line.startsWith('*')) open = { name: line.slice(1).trim(), chains: new Map(), rules: [] };
    else if (line.startsWith('#')) {
      const table = /^# Table [`'](\w+)' is incompatible/.exec(line)?.[1];
      if (table !== undefined) incompatible.push(table);
    } else if (line === 'COMMIT') {
      if (open !== undefined) tables.push(open);
      open = undefined;
    } else if (open !== undefined) readLine(line, open);
  }
  return { tables, incompatible };
}

function readLine(line: string, { chains, rules }: OpenTable): void {
  if (line.startsWith(':')) {
    const [name = '', policy = '-'] = line.slice(1).split(' ');
    chains.set(name, policy);
    return;
  }
  // With -c, counters stand in front.
  const match = /^(?:\[\d+:\d+\] )?-A (\S+) ?(.*)$/.exec(line);
  if (match !== null) rules.push({ chain: match[1] ?? '', spec: match[2] ?? '', target: targetOf(match[2] ?? '') });
}

/** A comment may hold anything, ` -j ` too: what is quoted is skipped. */
function targetOf(spec: string): string {
  for (const token of spec.matchAll(/"(?:[^"\\]|\\.)*"|(?:^|\s)-(?:j|g|-jump|-goto) (\S+)/g)) {
    if (token[1] !== undefined) return token[1];
  }
  return '';
}
