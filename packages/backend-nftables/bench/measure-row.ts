/*
 * Measures one size, in the network namespace it is started in, and prints the row as JSON. Started by
 * `apply.ts`, a process per row, so that memory is that of one row.
 */
import { readlink } from 'node:fs/promises';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { type ApplyRequest, type DataplaneBackend } from '@switchyard/core/engine';
import { type ForwardingTable, millis, noopLogger, type ServiceForwarding, systemClock } from '@switchyard/core';
import { nftablesBackend } from '../src/index.ts';
import { clusterOf, withoutLast } from './cluster.ts';

/** Results of one size. Times in milliseconds, memory in MB. */
export interface Row {
  readonly services: number;
  readonly load: number;
  /** The longest time that nothing else could run while loading. */
  readonly stall: number;
  readonly changes: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  /** CPU of this process and of those it started, per change. */
  readonly cpu: number;
  readonly adoption: number;
  readonly heap: number;
  readonly rss: number;
}

const { signal } = new AbortController();

function heap(): number {
  for (let round = 0; round < 3; round++) globalThis.gc?.();
  return process.memoryUsage().heapUsed / 1e6;
}

async function time(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** Anything but `applied` would be measured as very fast. */
async function apply(backend: DataplaneBackend, request: ApplyRequest): Promise<void> {
  const outcome = await backend.apply(request, signal);
  if (outcome.status !== 'applied') throw new Error(`the bench was not applied: ${JSON.stringify(outcome)}`);
}

async function measureLoad(backend: DataplaneBackend, table: ForwardingTable): Promise<Pick<Row, 'load' | 'stall'>> {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const load = await time(() => apply(backend, { table, scope: { kind: 'full' } }));
  delay.disable();
  return { load, stall: delay.max / 1e6 };
}

/** One endpoint less here, one more there, all over the table. */
async function measureChanges(backend: DataplaneBackend, table: ForwardingTable, count: number): Promise<number[]> {
  const services = [...table.services.values()];
  const changed = new Map<number, ServiceForwarding>();
  const times: number[] = [];
  for (let round = 0; round < count; round++) {
    const index = ((round >> 1) * 7919) % services.length;
    const whole = services[index] as ServiceForwarding;
    const next = changed.has(index) ? whole : withoutLast(whole);
    if (next === whole) changed.delete(index);
    else changed.set(index, next);
    const delta = { upserted: [next], removed: [], settingsChanged: false };
    times.push(await time(() => apply(backend, { table, scope: { kind: 'delta', delta } })));
  }
  return times.sort((a, b) => a - b);
}

async function measure(services: number): Promise<Row> {
  const open = (): Promise<DataplaneBackend> => nftablesBackend.open({ logger: noopLogger }, 'IPv4', signal);
  const table = clusterOf(services);
  await using backend = await open();
  await backend.cleanup(signal);
  const before = heap();
  const loaded = await measureLoad(backend, table);
  const grown = heap() - before;
  const cpuBefore = process.cpuUsage();
  const changes = 2000;
  const times = await measureChanges(backend, table, changes);
  const { user, system } = process.cpuUsage(cpuBefore);
  // The kernel's hash tables grow on for a while; a restart takes longer than that.
  await systemClock.sleep(millis(500), signal);
  await using restarted = await open();
  const adoption = await time(() => apply(restarted, { table, scope: { kind: 'full' } }));
  const rss = process.memoryUsage.rss() / 1e6;
  await restarted.cleanup(signal);
  const at = (share: number): number => times[Math.min(changes - 1, Math.floor(changes * share))] ?? 0;
  const cpu = (user + system) / 1000 / changes;
  const measured = { changes, p50: at(0.5), p99: at(0.99), max: at(1), cpu, adoption, heap: grown, rss };
  return { services, ...loaded, ...measured };
}

if ((await readlink('/proc/self/ns/net')) === (await readlink(`/proc/${process.ppid}/ns/net`))) {
  throw new Error('this would program the network namespace of who started it; run apply.ts, which makes one');
}
const row = await measure(Number(process.argv[2]));
process.stdout.write(JSON.stringify(row));
