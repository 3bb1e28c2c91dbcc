// The agent at the sizes of published failures of kube-proxy, in some modes. A cluster is SERVICESxENDPOINTS; with an
// `s` behind it all Services have the same endpoints.
// Needs root. --draw FILE.svg: also a picture of each figure by the number of endpoints, from at least two clusters.
//   --cluster 5006x50,8000x30s,44125x1,30000x8  --mode nftables,ebpf  --starts N (3)  --changes N (300)  --idle SECONDS (72: after a minute an agent's start is over)
import { writeFileSync } from 'node:fs';
import { cpus, loadavg, release } from 'node:os';
import { parseArgs } from 'node:util';
import { textTable } from '../src/report/report-html.ts';
import { createBenchLab } from './bench-lab.ts';
import { createFillers, endpointsPerService, type Fillers } from './big-cluster.ts';
import { curvesSvg, type Measured, panelsOf } from './curves.ts';
import { Measurement, type Rounds, type SizeFigures } from './measure.ts';
import { type Mode, modeOf } from './modes.ts';
import { rows, shown } from './targets.ts';

const { values } = parseArgs({
  options: {
    cluster: { type: 'string', default: '5006x50,8000x30s,44125x1,30000x8' },
    mode: { type: 'string', default: 'nftables,ebpf' },
    starts: { type: 'string', default: '3' },
    changes: { type: 'string', default: '300' },
    idle: { type: 'string', default: '72' },
    draw: { type: 'string' },
  },
});

/** The most that figures of these sizes may be, by their rows. */
const limits: Readonly<Record<string, number>> = {
  'cold start': 3000,
  'one endpoint change, p50': 5,
  'one endpoint change, p99': 20,
  'idle CPU': 1,
  'resident memory after sync': 200,
};

function clusterOf(text: string): Fillers {
  const [, services, endpoints, shared] = /^(\d+)x(\d+)(s?)$/.exec(text) ?? [];
  if (endpoints === undefined || Number(endpoints) > 1000) {
    throw new Error(
      `--cluster ${text}: must be SERVICESxENDPOINTS, such as 5000x10, at most 1000 endpoints in a Service`,
    );
  }
  return { services: Number(services), endpoints: Number(endpoints), isShared: shared === 's' };
}

async function measure(fillers: Fillers, mode: Mode, rounds: Rounds, signal: AbortSignal): Promise<SizeFigures> {
  await using benchLab = await createBenchLab(signal);
  await createFillers(benchLab.api, fillers, signal);
  const measurement = await Measurement.begin(benchLab, mode, signal);
  return await measurement.run(fillers.services, rounds, signal); // keeps the lab until then
}

async function main(): Promise<void> {
  const columns = values.cluster
    .split(',')
    .flatMap((cluster) =>
      values.mode.split(',').map((mode) => ({ cluster, fillers: clusterOf(cluster), mode: modeOf(mode) })),
    );
  const starts = Number(values.starts);
  const rounds = {
    coldStarts: starts,
    adoptions: starts,
    changes: Number(values.changes),
    bursts: 0,
    idleTime: Number(values.idle) * 1000,
  };
  const load = loadavg()[0]?.toFixed(1);
  const measured: (Measured & { readonly title: string })[] = [];
  for (const { cluster, fillers, mode } of columns) {
    process.stderr.write(`bench: ${cluster}, ${mode.name}\n`);
    measured.push({
      title: `${cluster}, ${mode.name}`,
      mode: mode.name,
      endpoints: fillers.services * (fillers.endpoints ?? endpointsPerService),
      figures: await measure(fillers, mode, rounds, new AbortController().signal),
    });
  }
  console.log(`${cpus().length} cores, kernel ${release().split('-')[0]}, load ${load} before; medians of ${starts}`);
  console.log(
    textTable([
      ['', ...measured.map(({ title }) => title), 'limit'],
      ...rows
        .filter(({ of }) => !measured.every(({ figures }) => Number.isNaN(of(figures))))
        .map(({ what, unit, of }) => [
          `${what}, ${unit}`,
          ...measured.map(({ figures }) => shown(of(figures))),
          `${limits[what] ?? ''}`,
        ]),
    ]),
  );
  if (values.draw === undefined) return;
  writeFileSync(
    values.draw,
    curvesSvg(
      panelsOf(
        measured,
        rows.filter(({ what }) => drawn.has(what)),
      ),
    ),
  );
}

/** Figures in the picture, by their rows. */
const drawn: ReadonlySet<string> = new Set([
  'one endpoint change, p50',
  'agent CPU per change',
  'cold start',
  'received in a cold start',
  'resident memory after sync',
  'idle CPU',
]);

await main();
