import { serviceChains } from '@switchyard/netfilter/iptables';
/**
 * Measures the cost of noticing and healing foreign changes, and of reading counters. For each variant and size: the load with the watch beside
 * it (which must report nothing), a reading of counters, a look at the tables, and heals from the report to the end of the apply.
 *
 *   node --conditions=@switchyard/source bench/drift.ts nft 1000
 */
import { type Drift } from '@switchyard/core/engine';
import { type ForwardingTable, millis, noopLogger, seconds, systemClock } from '@switchyard/core';
import type { IptablesVariant } from '@switchyard/netfilter/iptables';
import { createLab, runnerIn } from '@switchyard/lab';
import { LegacyLook } from '../src/watch/legacy-look.ts';
import { openBackend } from '../src/open-backend.ts';
import { clusterOf } from './cluster.ts';

const [variant = 'nft', size = '1000'] = process.argv.slice(2);
const { signal } = new AbortController();
await using lab = await createLab({ name: 'iptdrift', nodes: 1, ipFamilies: ['IPv4'] }, signal);
const [node] = lab.nodes;
if (node === undefined) throw new Error('a node is missing');
const runner = runnerIn(node, lab.folder);
const table: ForwardingTable = clusterOf(Number(size), '10.244.0.9');

// By this clock nothing takes time: each reading is a new one.
const clock = { ...systemClock, monotonic: () => millis(0) };
await using backend = await openBackend(
  {
    runner,
    logger: noopLogger,
    variant: variant as IptablesVariant,
    masqueradeBit: 14,
    localhostNodePorts: true,
    tcpBeLiberal: false,
    syncPeriod: seconds(1_000_000),
    netns: `/run/netns/${node.namespace}`,
    clock,
  },
  'IPv4',
  signal,
);

const reports: Drift[] = [];
let wake: (() => void) | undefined;
const stop = new AbortController();
const watching = backend.observers.drift?.((drift) => {
  reports.push(drift);
  wake?.();
}, stop.signal);

async function timed(what: string, rounds: number, work: () => Promise<unknown>): Promise<void> {
  const times: number[] = [];
  const cpu = process.cpuUsage();
  for (let round = 0; round < rounds; round++) {
    const start = performance.now();
    await work();
    times.push(performance.now() - start);
  }
  const used = process.cpuUsage(cpu);
  const own = (used.user + used.system) / 1000 / rounds;
  times.sort((a, b) => a - b);
  const median = times[Math.floor(rounds / 2)] ?? 0;
  const line = { variant, services: Number(size), what, ms: median, worst: times.at(-1), ownCpuMs: own };
  process.stdout.write(
    `${JSON.stringify(line, (_, value) => (typeof value === 'number' ? Math.round(value) : value))}\n`,
  );
}

async function apply(scope: { readonly kind: 'full'; readonly after?: 'drift' }): Promise<void> {
  const outcome = await backend.apply({ table, scope }, signal);
  if (outcome.status !== 'applied') throw new Error(`not applied: ${JSON.stringify(outcome)}`);
}

async function others(line: string): Promise<void> {
  const result = await runner.run(`iptables-${variant}`, line.split(' '), { timeout: seconds(60), signal });
  if (result.exitCode !== 0) throw new Error(result.stderr);
}

/** From the end of the damage to the end of the apply; with legacy, without the wait for the next look. */
async function heal(damage: string): Promise<void> {
  await timed(`heal: ${damage}`, 5, async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    wake = resolve;
    await others(damage);
    const start = performance.now();
    if (variant === 'nft') await promise;
    else {
      const found = (await new LegacyLook(backend.driver).compare(signal)) ?? [];
      for (const { table: of, chain } of found) backend.driver.noteChain({ table: of, name: chain });
    }
    await apply({ kind: 'full', after: 'drift' });
    process.stdout.write(`  ${Math.round(performance.now() - start)} ms\n`);
  });
}

await timed('load', 1, () => apply({ kind: 'full' }));
await systemClock.sleep(millis(500), signal);
process.stdout.write(`reports after the load: ${JSON.stringify(reports)}\n`);
await timed('counters', 5, async () => backend.observers.counters?.(signal));
await timed('look', variant === 'nft' ? 1 : 5, async () => new LegacyLook(backend.driver).compare(signal));
const [first] = [...table.services.values()];
if (first === undefined) throw new Error('there is no Service');
await heal(`-t nat -D ${serviceChains(first.key, 'TCP').SVC} 2`);
await heal('-t nat -D KUBE-SERVICES 5');
await heal('-t nat -D PREROUTING 1');
process.stdout.write(`resident: ${Math.round(process.memoryUsage().rss / 1e6)} MB\n`);
stop.abort();
await watching;
