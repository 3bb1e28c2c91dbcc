import type { SizeFigures } from './measure.ts';
import { percentile } from './percentile.ts';
import { type Row, verdictLine } from './targets.ts';

/** Which of the kernel's two iptables. */
export type Variant = 'nft' | 'legacy';

type Limits = Readonly<Partial<Record<Variant, Readonly<Record<number, number>>>>>;
type Measured = Readonly<Partial<Record<Variant, Readonly<Record<number, string>>>>>;

interface Figure {
  readonly what: string;
  readonly unit: Row['unit'];
  readonly of: (figures: SizeFigures) => number;
  readonly limits: Limits;
  /** 1.36.2 in iptables mode with the same variant; its children are in its memory. */
  readonly kubeProxy: Measured;
}

const median = (samples: readonly number[]): number => percentile(samples, 0.5);

const figures: readonly Figure[] = [
  {
    what: 'one endpoint change, p50',
    unit: 'ms',
    of: ({ changes }) => median(changes),
    limits: { nft: { 1000: 40 }, legacy: { 5000: 397 } },
    kubeProxy: { nft: { 1000: '87' }, legacy: { 1000: '132', 5000: '794' } },
  },
  {
    what: 'one endpoint change, p99',
    unit: 'ms',
    of: ({ changes }) => percentile(changes, 0.99),
    limits: {},
    kubeProxy: { nft: { 1000: '117' }, legacy: { 1000: '149', 5000: '1452' } },
  },
  {
    what: 'CPU per change, with children',
    unit: 'ms',
    of: ({ cpuPerChange }) => cpuPerChange,
    limits: {},
    kubeProxy: { nft: { 1000: '84' }, legacy: { 1000: '150', 5000: '792' } },
  },
  {
    what: 'cold start, to the answer of the last Service',
    unit: 'ms',
    of: ({ coldStarts }) => median(coldStarts),
    limits: { nft: { 5000: 45_000 }, legacy: { 5000: 3500 } },
    kubeProxy: { nft: { 1000: '5900', 5000: '> 600000' }, legacy: { 1000: '930', 5000: '3300-3500' } },
  },
  {
    what: 'restart, to the answer of what changed meanwhile',
    unit: 'ms',
    of: ({ adoptions }) => median(adoptions),
    limits: {},
    kubeProxy: {},
  },
  {
    what: 'resident memory after sync',
    unit: 'MB',
    of: ({ rssAfterSync }) => rssAfterSync,
    limits: { nft: { 5000: 150 }, legacy: { 5000: 150 } },
    kubeProxy: { nft: { 1000: '91' }, legacy: { 1000: '94', 5000: '189' } },
  },
  {
    what: 'resident memory after the changes',
    unit: 'MB',
    of: ({ rssAfterChanges }) => rssAfterChanges,
    limits: { nft: { 5000: 150 }, legacy: { 5000: 150 } },
    kubeProxy: { nft: { 1000: '107' }, legacy: { 1000: '108', 5000: '269' } },
  },
  {
    what: 'resident memory, peak',
    unit: 'MB',
    of: ({ rssPeak }) => rssPeak,
    limits: {},
    kubeProxy: { nft: { 1000: '147' }, legacy: { 1000: '118', 5000: '300' } },
  },
];

/** Header, then a line per figure and size. */
export function iptablesTable(
  measured: readonly { readonly variant: Variant; readonly size: SizeFigures }[],
  endpointsPerService: number,
): readonly (readonly string[])[] {
  const lines = figures.flatMap(({ what, unit, of, limits, kubeProxy }) =>
    measured.flatMap(({ variant, size }) => {
      const target = (services: number): number | undefined => limits[variant]?.[services];
      const line = verdictLine({ what, unit, of, target, kubeProxy: kubeProxy[variant] ?? {} }, size);
      return line === undefined ? [] : [[what, `${variant}, ${size.services} x ${endpointsPerService}`, ...line]];
    }),
  );
  return [['figure', 'size', 'measured', 'unit', 'target', 'verdict', 'kube-proxy 1.36.2 iptables'], ...lines];
}
