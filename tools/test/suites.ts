import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root, workspaces } from '../workspace.ts';

/** One program of `./dev test`, counted by its exit status or by the report it writes. */
export interface Suite {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  /** Absolute. Default: the checkout. */
  readonly folder?: string;
  /** Absolute path of vitest's JSON report. A suite without one counts as one test. */
  readonly report?: string;
  /** Tests with real packets, which a busy machine can disturb: a few that fail run again, alone. */
  readonly isRepeated?: boolean;
}

/** Suites that may run at the same time. Each stage waits for the one before. */
export interface Stage {
  readonly suites: readonly Suite[];
  /** Maximum number of suites that run side by side. */
  readonly width: number;
  /** Share of all processors' time that must be left for another suite to join: tests with real packets bound times. Default: none. */
  readonly leastIdle?: number;
}

const bundle: Suite = { name: 'bundle', command: ['nx', 'run-many', '-t', 'bundle', '--output-style=static'] };

const checks: readonly Suite[] = [
  { name: 'types', command: ['npm', 'run', '--silent', 'typecheck'] },
  { name: 'format', command: ['oxfmt', '--check'] },
  { name: 'lint', command: ['oxlint', '--deny-warnings'] },
  { name: 'promises', command: ['npm', 'run', '--silent', 'lint:promises'] },
  { name: 'unused', command: ['npm', 'run', '--silent', 'lint:unused'] },
  { name: 'house-rules', command: ['tsx', 'tools/lint/run.ts'] },
  { name: 'lockfile', command: ['npm', 'run', '--silent', 'lockcheck'] },
  { name: 'site', command: ['vitepress', 'build', 'tools/site'] },
];

/** Packages with the longest tests, longest first: a long run must not start last. */
const longest = [
  'apps/conformance',
  'apps/node-agent',
  'apps/kind-lb-controller',
  'packages/scenarios',
  'packages/backend-iptables',
  'packages/backend-nftables',
  'packages/lab',
];

/** The conformance cases that every mode must answer first, with real packets through the bundled agent in each of the five modes. */
const smoke: Suite = {
  name: 'smoke',
  command: [
    'node',
    '--conditions=@switchyard/source',
    'apps/conformance/src/main.ts',
    '--backend=all',
    '--tag=smoke',
    '--jobs=5',
    '--lab-name=smoke',
  ],
};

/** Everything, or what finds most faults in a few minutes. */
export function stages(kind: 'all' | 'quick'): readonly Stage[] {
  const units = suitesOf('unit');
  const first = { width: 2, suites: [bundle, ...checks] };
  if (kind === 'quick') return [first, { width: 2, suites: [smoke, ...units] }];
  return [
    first,
    { width: 2, suites: [...suitesOf('exhaustive'), ...units] },
    { width: 3, leastIdle: 0.15, suites: suitesOf('privileged') },
    { width: 2, leastIdle: 0.5, suites: suitesOf('quiet') },
  ];
}

/** The tests of each package that has such, longest first. */
function suitesOf(kind: 'unit' | 'exhaustive' | 'privileged' | 'quiet'): readonly Suite[] {
  const config = kind === 'unit' ? 'vitest.config.ts' : `vitest.${kind}.config.ts`;
  return [...workspaces().map(({ folder }) => folder), 'tools']
    .filter((folder) => existsSync(join(root, folder, config)))
    .toSorted((a, b) => rank(a) - rank(b))
    .map((folder) => ({
      name: `${kind} ${folder}`,
      command: ['vitest', 'run', '--config', config],
      folder: join(root, folder),
      report: join(root, folder, `.test-results/${kind}.json`),
      isRepeated: kind === 'privileged' || kind === 'quiet',
    }));
}

function rank(folder: string): number {
  const place = longest.indexOf(folder);
  return place === -1 ? longest.length : place;
}
