/** Connection tracking of this process's network namespace. */
export interface ConntrackState {
  readonly entries: number;
  /** `net.netfilter.nf_conntrack_max`; undefined if it cannot be read. */
  readonly limit: number | undefined;
  /** New flows dropped because the table was full, since the namespace exists. */
  readonly full: number;
  /** New flows dropped because another flow had the same tuples. */
  readonly clashes: number;
}

/** Reads a file as text; undefined if there is none. */
export type ReadFile = (path: string) => string | undefined;

/** State of connection tracking; undefined where the kernel does not track. */
export function readConntrackState(read: ReadFile): ConntrackState | undefined {
  const text = read('/proc/net/stat/nf_conntrack');
  if (text === undefined) return undefined;
  const [header = '', ...cpus] = text.trim().split('\n');
  const names = header.trim().split(/\s+/);
  const rows = cpus.map((line) =>
    line
      .trim()
      .split(/\s+/)
      .map((word) => Number.parseInt(word, 16)),
  );
  const sum = (name: string): number => rows.reduce((total, row) => total + (row[names.indexOf(name)] ?? 0), 0);
  const limit = Number(read('/proc/sys/net/netfilter/nf_conntrack_max'));
  return {
    entries: rows[0]?.[names.indexOf('entries')] ?? 0,
    limit: Number.isNaN(limit) ? undefined : limit,
    full: sum('drop'),
    clashes: sum('insert_failed'),
  };
}
