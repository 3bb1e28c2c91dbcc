import { percentile } from '../percentile.ts';

/** Samples of one proxy at one size. Times in milliseconds, memory in MB, connections in microseconds; one sample per turn unless said. */
export interface PeerFigures {
  readonly peer: string;
  readonly services: number;
  readonly coldStarts: number[];
  /** Of the proxy and its ended children, `PeersOptions.settle` after that answer. */
  readonly coldStartCpu: number[];
  /** One per change. */
  readonly changes: number[];
  readonly cpuPerChange: number[];
  /** Last write acknowledged to last answer. */
  readonly burstTails: number[];
  /** One per Service: own write acknowledged to own answer. */
  readonly burstEach: number[];
  readonly burstCpu: number[];
  readonly restarts: number[];
  readonly rssAfterSync: number[];
  /** Undefined until the last turn. */
  rssAfterChanges: number | undefined;
  /** To a pod, from a node without rules. */
  readonly connectBare: number[];
  /** To a pod, beside the rules of the proxy. */
  readonly connectDirect: number[];
  /** To a cluster IP. */
  readonly connectService: number[];
  /** Parts that did not end in their time; the turn ended there. */
  readonly late: string[];
  /** Why the proxy ended by itself; undefined: it did not. */
  failure: string | undefined;
}

/** Figures without a sample. */
export function emptyFigures(peer: string, services: number): PeerFigures {
  return {
    peer,
    services,
    coldStarts: [],
    coldStartCpu: [],
    changes: [],
    cpuPerChange: [],
    burstTails: [],
    burstEach: [],
    burstCpu: [],
    restarts: [],
    rssAfterSync: [],
    rssAfterChanges: undefined,
    connectBare: [],
    connectDirect: [],
    connectService: [],
    late: [],
    failure: undefined,
  };
}

interface Row {
  readonly what: string;
  /** NaN: no sample. */
  readonly of: (figures: PeerFigures) => number;
  /** Part of a turn that is late when there is no sample. */
  readonly part: string;
}

const median = (samples: readonly number[]): number => percentile(samples, 0.5);

const rows: readonly Row[] = [
  { what: 'one endpoint change, p50, ms', of: ({ changes }) => median(changes), part: 'endpoint change' },
  { what: 'one endpoint change, p99, ms', of: ({ changes }) => percentile(changes, 0.99), part: 'endpoint change' },
  { what: 'CPU per change, ms', of: ({ cpuPerChange }) => median(cpuPerChange), part: 'endpoint change' },
  { what: 'BURST at once: last write to last answer, ms', of: ({ burstTails }) => median(burstTails), part: 'burst' },
  { what: 'BURST at once: own write to own answer, p50, ms', of: ({ burstEach }) => median(burstEach), part: 'burst' },
  {
    what: 'BURST at once: own write to own answer, p99, ms',
    of: ({ burstEach }) => percentile(burstEach, 0.99),
    part: 'burst',
  },
  { what: 'BURST at once: CPU, ms', of: ({ burstCpu }) => median(burstCpu), part: 'burst' },
  { what: 'cold start, ms', of: ({ coldStarts }) => median(coldStarts), part: 'cold start' },
  { what: 'cold start, CPU, ms', of: ({ coldStartCpu }) => median(coldStartCpu), part: 'cold start' },
  { what: 'restart with the rules in place, ms', of: ({ restarts }) => median(restarts), part: 'restart' },
  { what: 'memory after the start, MB', of: ({ rssAfterSync }) => median(rssAfterSync), part: 'cold start' },
  {
    what: 'memory after CHURN changes, MB',
    of: ({ rssAfterChanges }) => rssAfterChanges ?? Number.NaN,
    part: 'many changes',
  },
  { what: 'connect to a pod, no proxy, µs', of: ({ connectBare }) => median(connectBare), part: '' },
  { what: 'connect to a pod, µs', of: ({ connectDirect }) => median(connectDirect), part: '' },
  { what: 'connect to a cluster IP, µs', of: ({ connectService }) => median(connectService), part: '' },
  { what: 'changes measured', of: ({ changes }) => changes.length, part: '' },
];

/** Numbers of a run that the names of rows contain. */
export interface RowNumbers {
  readonly burst: number;
  readonly churn: number;
  /** Milliseconds. */
  readonly patience: number;
}

/** Header with the proxies, then a line per figure. All figures are of one size. */
export function peersTable(all: readonly PeerFigures[], numbers: RowNumbers): readonly (readonly string[])[] {
  const used = numbers.burst === 0 ? rows.filter(({ what }) => !what.startsWith('BURST')) : rows;
  const named = (what: string): string =>
    what.replace('BURST', grouped(numbers.burst)).replace('CHURN', grouped(numbers.churn));
  return [
    ['figure', ...all.map(({ peer }) => peer)],
    ...used.map((row) => [named(row.what), ...all.map((figures) => cellOf(row, figures, numbers.patience))]),
  ];
}

function cellOf({ of, part }: Row, figures: PeerFigures, patience: number): string {
  const value = of(figures);
  if (!Number.isNaN(value)) return shown(value);
  return part !== '' && figures.late.includes(part) ? `> ${patience / 1000} s` : '-';
}

function shown(value: number): string {
  return value < 10 && !Number.isInteger(value) ? value.toFixed(1) : grouped(Math.round(value));
}

/** With a comma every three digits. */
export function grouped(value: number): string {
  return String(value).replaceAll(/\B(?=(\d{3})+(?!\d))/g, ',');
}
