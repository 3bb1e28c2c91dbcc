// The agent at the sizes of published failures of kube-proxy, in some modes. A cluster is SERVICESxENDPOINTS; with an
// `s` behind it all Services have the same endpoints.
// Needs root. --kube-proxy FILE: beside each cluster also this kube-proxy's nftables mode. --draw FILE.svg: also a picture of each figure by the number of endpoints, from at least two clusters.
//   --cluster 5006x50,8000x30s,44125x1,30000x8  --mode nftables,ebpf  --starts N (3)  --changes N (300)  --idle SECONDS (72: after a minute an agent's start is over)
import { writeFileSync } from 'node:fs';
import { cpus, loadavg, release } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { messageOf } from '@switchyard/core';
import { textTable } from '../src/report/report-html.ts';
import { createBenchLab } from './bench-lab.ts';
import { createFillers, endpointsPerService, type Fillers } from './big-cluster.ts';
import { curvesSvg, type Measured, panelsOf } from './curves.ts';
import { Measurement, type Rounds, type SizeFigures } from './measure.ts';
import { flushRules, type Mode, modeOf } from './modes.ts';
import { kubeProxyPeer } from './peers/peer.ts';
import { rows, shown } from './targets.ts';

const { values } = parseArgs({
  options: {
    cluster: { type: 'string', default: '5006x50,8000x30s,44125x1,30000x8' },
    mode: { type: 'string', default: 'nftables,ebpf' },
    starts: { type: 'string', default: '3' },
    changes: { type: 'string', default: '300' },
    idle: { type: 'string', default: '72' },
    'kube-proxy': { type: 'string' },
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

/** kube-proxy's nftables mode. */
function kubeProxyMode(kubeProxy: string): Mode {
  const { name, start } = kubeProxyPeer('nftables', { kubeProxy, minSyncPeriod: 10 });
  return { name, start, args: [], flush: ({ node }) => flushRules(node) };
}

async function measure(fillers: Fillers, mode: Mode, rounds: Rounds, signal: AbortSignal): Promise<SizeFigures> {
  await using benchLab = await createBenchLab(signal);
  await createFillers(benchLab.api, fillers, signal);
  const measurement = await Measurement.begin(benchLab, mode, signal);
  return await measurement.run(fillers.services, rounds, signal); // keeps the lab until then
}

async function main(): Promise<void> {
  const { 'kube-proxy': kubeProxy } = values;
  const others = kubeProxy === undefined ? [] : [kubeProxyMode(resolve(process.env['INIT_CWD'] ?? '', kubeProxy))];
  const modes = [...values.mode.split(',').map(modeOf), ...others];
  const columns = values.cluster
    .split(',')
    .flatMap((cluster) => modes.map((mode) => ({ cluster, fillers: clusterOf(cluster), mode })));
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
  const failures: string[] = [];
  for (const { cluster, fillers, mode } of columns) {
    const title = `${cluster}, ${mode.name}`;
    process.stderr.write(`bench: ${title}\n`);
    const endpoints = fillers.services * (fillers.endpoints ?? endpointsPerService);
    try {
      const figures = await measure(fillers, mode, rounds, new AbortController().signal);
      measured.push({ title, mode: mode.name, endpoints, figures });
    } catch (error) {
      failures.push(`${title}: ${messageOf(error)}`); // the others still count
    }
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
  for (const failure of failures) console.log(failure);
  if (failures.length > 0) process.exitCode = 1;
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
