/*
 * Prints what a scrape costs the agent at 10,000 Services: how long it takes, how long nothing else runs, how often the
 * kernel is read. Needs root; programs only a network namespace it makes itself. Run:
 * node --conditions=@switchyard/source apps/node-agent/bench/scrape.ts
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { nftablesBackend } from '@switchyard/backend-nftables';
import { buildTable, ClusterState, nodeName, noopLogger, seconds, systemClock } from '@switchyard/core';
import { type DataplaneBackend } from '@switchyard/core/engine';
import { node, replaceAll, service, slice, tableOptions } from '@switchyard/core/testing';
import { createCommandRunner } from '@switchyard/host';
import { createLab } from '@switchyard/lab';
import { createMetricsPage } from '../src/metrics/metrics-page.ts';
import { joinPieces } from '../src/metrics/testing/metrics-pages.ts';
import { serviceMetrics } from '../src/metrics/service-metrics.ts';

const services = 10_000;
const limits = [1000, 10_000];
const rounds = 8;
const { signal } = new AbortController();

async function measure(): Promise<void> {
  const host = { runner: createCommandRunner(), transport: 'netlink' as const, logger: noopLogger };
  await using backend = await nftablesBackend.open(host, 'IPv4', signal);
  const outcome = await backend.apply({ table: table(), scope: { kind: 'full' } }, signal);
  if (outcome.status !== 'applied') throw new Error(`the bench was not applied: ${JSON.stringify(outcome)}`);
  for (const limit of limits) console.log(await scrape(backend, limit));
}

/** Services with one endpoint each. */
function table() {
  const state = new ClusterState({ nodeName: nodeName('n1') });
  const keys = Array.from({ length: services }, (_, index) => `ns-${index % 50}/service-${index}`);
  const address = (first: number, index: number): string => `10.${first}.${index >> 8}.${index & 255}`;
  state.apply(
    replaceAll({
      services: keys.map((key, index) => service(key, { clusterIps: [address(96, index)], ports: [{ name: 'http' }] })),
      slices: keys.map((key, index) =>
        slice(key, { endpoints: [address(244, index)], ports: [{ name: 'http', port: 8080 }] }),
      ),
      nodes: [node('n1')],
    }),
  );
  return buildTable(state, 'all', undefined, tableOptions());
}

/** The best round, each after the last reading has become too old to be served again. */
async function scrape(backend: DataplaneBackend, limit: number): Promise<string> {
  let reads = 0;
  const counted = Object.assign(Object.create(backend) as DataplaneBackend, {
    ipFamily: backend.ipFamily,
    counters: async (stop: AbortSignal) => {
      reads++;
      return (await backend.observers.counters?.(stop)) ?? new Map();
    },
  });
  const page = createMetricsPage({ mode: 'nftables', ipFamilies: ['IPv4'], clock: systemClock });
  const { metrics } = page;
  page.addCollector(
    serviceMetrics({ backends: [counted], limit, clock: systemClock, logger: noopLogger, metrics, signal }),
  );
  const found: { readonly took: number; readonly stall: number; readonly bytes: number }[] = [];
  for (let round = 0; round < rounds; round++) {
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    const start = performance.now();
    const body = await joinPieces(await page.metricsText(undefined, signal));
    const took = performance.now() - start;
    await systemClock.sleep(seconds(0.01), signal);
    delay.disable();
    found.push({ took, stall: delay.max / 1e6, bytes: body.length });
    await systemClock.sleep(seconds(5), signal); // what is younger is served again
  }
  // The machine is shared: noise only adds.
  const took = Math.min(...found.map((one) => one.took));
  const stall = Math.min(...found.map((one) => one.stall));
  const size = (found[0]?.bytes ?? 0) / 1e6;
  return (
    `${services} Services, limit ${limit}: ${took.toFixed(0)} ms, ${size.toFixed(1)} MB, longest standstill ` +
    `${stall.toFixed(0)} ms, the kernel read ${reads / rounds} times a scrape`
  );
}

if (process.argv[2] === 'here') await measure();
else {
  const lab = await createLab({ name: 'scrape', nodes: 1, ipFamilies: ['IPv4'] }, signal);
  try {
    const [host] = lab.nodes;
    const args = ['--conditions=@switchyard/source', fileURLToPath(import.meta.url), 'here'];
    const result = await host?.run(process.execPath, args, { timeout: seconds(180) });
    process.stdout.write(`${result?.stdout}${result?.stderr}`);
  } finally {
    await lab[Symbol.asyncDispose]();
  }
}
