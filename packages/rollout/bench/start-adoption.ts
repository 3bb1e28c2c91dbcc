// Start and adoption of the agent in a large cluster. With --beside PROGRAM also those of another build of the agent: both take
// turns in one lab, so that the machine's clock is the same for both. Needs root.
//   --services N (5000)  --rounds N (5)  --beside PROGRAM (bin/switchyard-agent of another checkout, with its bundle)
import { cpus, loadavg, release } from 'node:os';
import { parseArgs } from 'node:util';
import { createFillers, endpointsPerService } from './big-cluster.ts';
import { Measurement, type StartAndAdoption } from './measure.ts';
import { type Mode, nftables } from './modes.ts';
import { percentile } from './percentile.ts';
import { createBenchLab } from './bench-lab.ts';
import { textTable } from '../src/report/report-html.ts';

const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '5000' },
    rounds: { type: 'string', default: '5' },
    beside: { type: 'string' },
  },
});

interface Build extends Mode {
  readonly turns: StartAndAdoption[];
}

const figures = {
  'cold start, ms': (turn) => turn.coldStart,
  'until in sync, ms': (turn) => turn.synced,
  'CPU of the start, ms': (turn) => turn.startCpu,
  'memory at most, MB': (turn) => turn.rssPeak,
  'memory a second later, MB': (turn) => turn.rss,
  'adoption, ms': (turn) => turn.adoption,
} as const satisfies Readonly<Record<string, (turn: StartAndAdoption) => number>>;

function progress(text: string): void {
  process.stderr.write(`bench: ${text}\n`);
}

async function measure(builds: readonly Build[], services: number, rounds: number): Promise<void> {
  const { signal } = new AbortController();
  await using benchLab = await createBenchLab(signal);
  await createFillers(benchLab.api, { services }, signal);
  const measurement = await Measurement.begin(benchLab, nftables, signal);
  for (let round = 0; round < rounds; round++) {
    // The first of a round differs from the last one's: neither build always follows the flush of the other.
    for (const build of round % 2 === 0 ? builds : builds.toReversed()) {
      build.turns.push(await measurement.startAndAdopt(build, signal));
      progress(`round ${round + 1} of ${rounds}: ${build.name}`);
    }
  }
}

/** A row per figure: median and range of each build, and the ratio of the first build's median to the second's. */
function resultRows(builds: readonly Build[]): readonly (readonly string[])[] {
  const medians = builds.length === 2 ? ['ratio'] : [];
  return [
    ['', ...builds.map(({ name }) => name), ...medians],
    ...Object.entries(figures).map(([name, of]) => {
      const samples = builds.map(({ turns }) => turns.map(of));
      const [ours = Number.NaN, others] = samples.map((all) => percentile(all, 0.5));
      const ratio = others === undefined ? [] : [(ours / others).toFixed(2)];
      return [name, ...samples.map(withRange), ...ratio];
    }),
  ];
}

function withRange(samples: readonly number[]): string {
  const [least, median, most] = [0, 0.5, 1].map((share) => percentile(samples, Math.max(share, 1e-9)).toFixed(0));
  return `${median} (${least} to ${most})`;
}

async function main(): Promise<void> {
  const [services, rounds] = [Number(values.services), Number(values.rounds)];
  const builds: Build[] = [{ ...nftables, name: 'this checkout', turns: [] }];
  if (values.beside !== undefined) builds.push({ ...nftables, name: 'beside', program: values.beside, turns: [] });
  const load = loadavg()[0]?.toFixed(1);
  await measure(builds, services, rounds);
  const machine = `${cpus().length} cores, kernel ${release().split('-')[0]}, load ${load} before`;
  console.log(
    `start and adoption, ${services} Services x ${endpointsPerService} endpoints, ${rounds} rounds, ${machine}`,
  );
  console.log(textTable(resultRows(builds)));
}

await main();
