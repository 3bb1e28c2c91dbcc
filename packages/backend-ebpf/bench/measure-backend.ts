/*
 * Measures one way of programming the kernel at one size, in the network namespace it is started in, and prints a row as JSON. Started
 * by `backends.ts`, a process per row, so that memory is that of one row.
 *
 *   measure-backend.ts writer|ebpf|nftables SERVICES BPFFS CGROUP
 */
import { readlinkSync } from 'node:fs';
import { nftablesBackend } from '@switchyard/backend-nftables';
import { type ApplyRequest, type DataplaneBackend } from '@switchyard/core/engine';
import {
  type ForwardingTable,
  millis,
  noopLogger,
  type ServiceForwarding,
  systemClock,
  type TableDelta,
} from '@switchyard/core';
import { trimMemory } from '@switchyard/native';
import { ebpfBackend } from '../src/index.ts';
import { LinuxKernel } from '../src/kernel/programs/linux-kernel.ts';
import { applyGrowing } from '../src/kernel/maps/apply-growing.ts';
import { clusterOf, withoutLast } from './large-table.ts';
import { loadSocketLb } from './machine.ts';

/** Measured program: maps alone, the whole eBPF backend, or the nftables backend. */
export type Kind = 'writer' | 'ebpf' | 'nftables';

/** Measurements of one kind at one size. Times in milliseconds, memory in MB. */
export interface Row {
  readonly kind: Kind;
  readonly services: number;
  /** From the table to all in the kernel, programs attached. */
  readonly load: number;
  /** CPU of this process for that. */
  readonly loadCpu: number;
  readonly p50: number;
  readonly p99: number;
  /** CPU of this process per change. */
  readonly cpu: number;
  /** Resident memory of the process, table included, after a garbage collection. */
  readonly rss: number;
}

/** Something that takes a table and changes of it. */
interface Subject {
  readonly load: () => Promise<unknown>;
  readonly change: (delta: TableDelta) => unknown;
  readonly remove: () => Promise<unknown>;
}

const { signal } = new AbortController();
const changes = 2000;
const [kind = 'writer', size = '1000', bpffs = '', cgroup = ''] = process.argv.slice(2) as [
  Kind?,
  string?,
  string?,
  string?,
];

/** Anything but `applied` would be measured as very fast. */
async function apply(backend: DataplaneBackend, request: ApplyRequest): Promise<void> {
  const outcome = await backend.apply(request, signal);
  if (outcome.status !== 'applied') throw new Error(`the bench was not applied: ${JSON.stringify(outcome)}`);
}

async function subjectOf(table: ForwardingTable): Promise<Subject> {
  if (kind === 'writer') return writerOf(table);
  const common = { logger: noopLogger };
  const backend =
    kind === 'nftables'
      ? await nftablesBackend.open(common, 'IPv4', signal)
      : await ebpfBackend.open(
          { ...common, bpffs, cgroup, interfaces: [], northSouth: 'tc', socketLb: 'all' },
          'IPv4',
          signal,
        );
  return {
    load: () => apply(backend, { table, scope: { kind: 'full' } }),
    change: (delta) => apply(backend, { table, scope: { kind: 'delta', delta } }),
    remove: () => backend.cleanup(signal),
  };
}

function writerOf(table: ForwardingTable): Subject {
  const kernel = new LinuxKernel({
    ipFamily: 'IPv4',
    cgroup: () => cgroup,
    bpffs,
    socketLb: 'all',
    logger: noopLogger,
  });
  let change: Subject['change'] = () => undefined;
  return {
    load: async () => {
      const { writer } = await loadSocketLb(kernel, table, signal);
      change = async (delta) => {
        const { failed } = await applyGrowing({ writer, kernel, table, delta }, signal);
        if (failed.size > 0) throw new Error(`not written: ${[...failed.values()].map(String).join('; ')}`);
      };
    },
    change: (delta) => change(delta),
    remove: () => kernel.remove(signal),
  };
}

/** One endpoint less here, one more there, all over the table. Microseconds, sorted. */
async function measureChanges(subject: Subject, table: ForwardingTable): Promise<readonly number[]> {
  const services = [...table.services.values()];
  const shortened = new Set<number>();
  const times: number[] = [];
  for (let round = 0; round < changes; round++) {
    const index = ((round >> 1) * 7919) % services.length;
    const whole = services[index] as ServiceForwarding;
    const next = shortened.delete(index) ? whole : withoutLast(whole);
    if (next !== whole) shortened.add(index);
    const delta = { upserted: [next], removed: [], settingsChanged: false };
    const start = performance.now();
    await subject.change(delta);
    times.push(performance.now() - start);
  }
  return times.toSorted((a, b) => a - b);
}

function resident(): number {
  for (let round = 0; round < 3; round++) globalThis.gc?.();
  trimMemory();
  return process.memoryUsage.rss() / 1e6;
}

if (readlinkSync('/proc/self/ns/net') === readlinkSync(`/proc/${process.ppid}/ns/net`)) {
  throw new Error('this would program the network namespace of who started it; run backends.ts, which makes one');
}
const table = clusterOf(Number(size));
const subject = await subjectOf(table);
const loadBefore = process.cpuUsage();
const start = performance.now();
await subject.load();
const load = performance.now() - start;
const loadUsed = process.cpuUsage(loadBefore);
await systemClock.sleep(millis(500), signal);
const rss = resident();
const cpuBefore = process.cpuUsage();
const times = await measureChanges(subject, table);
const { user, system } = process.cpuUsage(cpuBefore);
const at = (share: number): number => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
await subject.remove();
const row: Row = {
  kind,
  services: Number(size),
  load,
  loadCpu: (loadUsed.user + loadUsed.system) / 1000,
  p50: at(0.5),
  p99: at(0.99),
  cpu: (user + system) / 1000 / changes,
  rss,
};
process.stdout.write(JSON.stringify(row));
