import { percentile } from './percentile.ts';
import type { SizeFigures } from './measure.ts';

/** One line of the table: a figure, what it must not exceed, and kube-proxy 1.36.2 in nftables mode where it was measured. */
export interface Row {
  readonly what: string;
  readonly unit: 'ms' | 'MB' | 'ms/s';
  readonly of: (figures: SizeFigures) => number;
  /** Undefined: no target at this size. */
  readonly target: (services: number) => number | undefined;
  readonly kubeProxy: Readonly<Record<number, string>>;
}

const everywhere = (limit: number) => (): number => limit;
const upTo1000 = (limit: number) => (services: number) => (services <= 1000 ? limit : undefined);
const at5000 = (limit: number) => (services: number) => (services === 5000 ? limit : undefined);
const memory = (services: number): number => (services <= 5000 ? 110 : 140);
const median = (samples: readonly number[]): number => percentile(samples, 0.5);

/** The figures that the agent is to reach, on 2 cores. */
export const rows: readonly Row[] = [
  {
    what: 'one endpoint change, p50',
    unit: 'ms',
    of: ({ changes }) => percentile(changes, 0.5),
    target: everywhere(10),
    kubeProxy: { 1000: '209', 5000: '1480' },
  },
  {
    what: 'one endpoint change, p99',
    unit: 'ms',
    of: ({ changes }) => percentile(changes, 0.99),
    target: everywhere(40),
    kubeProxy: { 1000: '233', 5000: '2004' },
  },
  {
    what: 'agent CPU per change',
    unit: 'ms',
    of: ({ cpuPerChange }) => cpuPerChange,
    target: everywhere(10),
    kubeProxy: { 1000: '225', 5000: '1536' },
  },
  {
    what: '500 services at once, tail',
    unit: 'ms',
    of: ({ bursts }) => median(bursts),
    target: at5000(100),
    kubeProxy: { 5000: '3000' },
  },
  {
    what: 'start to in sync',
    unit: 'ms',
    of: ({ syncs }) => median(syncs),
    target: upTo1000(1000),
    kubeProxy: {},
  },
  {
    what: 'cold start',
    unit: 'ms',
    of: ({ coldStarts }) => median(coldStarts),
    target: (services) => upTo1000(1000)(services) ?? at5000(1500)(services),
    kubeProxy: { 1000: '880', 5000: '5100-5900' },
  },
  {
    what: 'restart, adoption of the table',
    unit: 'ms',
    of: ({ adoptions }) => median(adoptions),
    target: at5000(1500),
    kubeProxy: {},
  },
  {
    what: 'CPU of a cold start',
    unit: 'ms',
    of: ({ startCpus }) => median(startCpus),
    target: () => undefined,
    kubeProxy: {},
  },
  {
    what: 'received in a cold start',
    unit: 'MB',
    of: ({ received }) => median(received) / 1e6,
    target: () => undefined,
    kubeProxy: {},
  },
  {
    what: 'idle CPU',
    unit: 'ms/s',
    of: ({ idleCpu }) => idleCpu,
    target: everywhere(1),
    kubeProxy: {},
  },
  {
    what: 'resident memory, at most',
    unit: 'MB',
    of: ({ rssPeak }) => rssPeak,
    target: () => undefined,
    kubeProxy: {},
  },
  {
    what: 'resident memory, idle',
    unit: 'MB',
    of: ({ rssIdle }) => rssIdle,
    target: upTo1000(80),
    kubeProxy: {},
  },
  {
    what: 'resident memory after sync',
    unit: 'MB',
    of: ({ rssAfterSync }) => rssAfterSync,
    target: memory,
    kubeProxy: { 1000: '86', 5000: '161-172' },
  },
  {
    what: 'resident memory after the changes',
    unit: 'MB',
    of: ({ rssAfterChanges }) => rssAfterChanges,
    target: memory,
    kubeProxy: { 1000: '112', 5000: '281-294' },
  },
];

/** Header, then a line per figure and size: value, target, verdict, kube-proxy. */
export function verdictTable(
  sizes: readonly SizeFigures[],
  endpointsPerService: number,
): readonly (readonly string[])[] {
  const lines = rows.flatMap((row) =>
    sizes.flatMap((figures) => {
      const size = `${figures.services} x ${endpointsPerService}`;
      const line = verdictLine(row, figures);
      return line === undefined ? [] : [[row.what, size, ...line]];
    }),
  );
  return [['figure', 'services', 'measured', 'unit', 'target', 'verdict', 'kube-proxy 1.36.2 nftables'], ...lines];
}

/** Value, unit, target, verdict, kube-proxy; undefined: not measured at this size. */
export function verdictLine(row: Row, figures: SizeFigures): readonly string[] | undefined {
  const value = row.of(figures);
  if (Number.isNaN(value)) return undefined;
  const target = row.target(figures.services);
  const verdict = target === undefined ? '-' : value <= target ? 'PASS' : 'FAIL';
  const limit = target === undefined ? '-' : `<= ${target}`;
  return [shown(value), row.unit, limit, verdict, row.kubeProxy[figures.services] ?? '-'];
}

/** Tenths of small values. */
export function shown(value: number): string {
  return value < 10 ? value.toFixed(1) : value.toFixed(0);
}
