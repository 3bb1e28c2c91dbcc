import { readdirSync, readFileSync } from 'node:fs';
import type { LabNode } from '@switchyard/lab';

/** Resident memory of a process in MB. */
export function rssOf(pid: number): number {
  return statusOf(pid, 'VmRSS');
}

/** Part of it that no file backs: without the pages of Node's program, which all Node processes share. */
export function ownRssOf(pid: number): number {
  return statusOf(pid, 'RssAnon');
}

/** The most that a process has had resident, in MB. */
export function peakRssOf(pid: number): number {
  return statusOf(pid, 'VmHWM');
}

function statusOf(pid: number, name: string): number {
  const line = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1] ?? Number.NaN) / 1024;
}

/** CPU milliseconds a process and its ended children have used; the kernel counts in 10 ms. */
export function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index] ?? 0), 0) * 10;
}

/** Bytes that the devices of a node have received, without loopback. */
export async function receivedBy(node: LabNode): Promise<number> {
  const { stdout } = await node.run('cat', ['/proc/net/dev']);
  const counts = stdout.matchAll(/^\s*(\S+): *(\d+)/gm);
  return Array.from(counts, ([, device, bytes]) => (device === 'lo' ? 0 : Number(bytes))).reduce((a, b) => a + b, 0);
}

/** CPU milliseconds of all threads of a process, exactly; without ended children and threads. */
export function scheduledOf(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const nanos = threads.map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]),
  );
  return nanos.reduce((sum, one) => sum + one, 0) / 1e6;
}

/** CLOCK_MONOTONIC in milliseconds, which all processes of the machine share. */
export function monotonic(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
