import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ForwardingTable, noopLogger, seconds, systemClock } from '@switchyard/core';
import { findMount, mountBpffs } from '@switchyard/native';
import { LinuxKernel } from '../src/kernel/programs/linux-kernel.ts';
import { neededSizes } from '../src/kernel/maps/map-sizes.ts';
import { ServiceWriter } from '../src/kernel/maps/service-writer.ts';
import { Settings } from '../src/kernel/settings/settings.ts';

/** Cost of one call of `connections`, in nanoseconds. */
export interface Cost {
  readonly median: number;
  readonly p99: number;
}

/**
 * A folder, a bpffs, a cgroup, a network namespace in which all endpoints are local, and the compiled `connections.c` of one run;
 * nothing stays behind.
 */
export class Machine implements Disposable {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'swy-bench-'));
  readonly bpffs: string = join(this.folder, 'bpffs');
  readonly connections: string = join(this.folder, 'connections');
  readonly cgroup: string;
  readonly netns: string = `/run/netns/swy-bench-${process.pid}`;

  constructor() {
    const mount = findMount('cgroup2');
    if (mount === undefined) throw new Error('cgroup2 is not mounted');
    mountBpffs(this.bpffs);
    this.cgroup = join(mount, `swy-bench-${process.pid}`);
    mkdirSync(this.cgroup);
    execFileSync('ip', ['netns', 'add', basename(this.netns)]);
    this.#ip('link', 'set', 'lo', 'up');
    this.#ip('route', 'add', 'local', '11.0.0.0/8', 'dev', 'lo');
    this.#ip('route', 'add', 'default', 'dev', 'lo');
    const source = fileURLToPath(new URL('connections.c', import.meta.url));
    execFileSync('cc', ['-O2', '-Wall', '-Wextra', '-Werror', source, '-o', this.connections]);
  }

  /** One family's part of the kernel, attached to the cgroup of this run. */
  kernel(): LinuxKernel {
    const { bpffs, cgroup } = this;
    return new LinuxKernel({ ipFamily: 'IPv4', cgroup: () => cgroup, bpffs, socketLb: 'all', logger: noopLogger });
  }

  #ip(...args: readonly string[]): void {
    execFileSync('nsenter', [`--net=${this.netns}`, 'ip', ...args]);
  }

  /** Starts `connections` in the cgroup and the namespace, on one CPU. */
  start(args: readonly string[], cpu: number): ChildProcess {
    const script = 'echo $$ >"$0/cgroup.procs" && exec nsenter "$@"';
    const command = [`--net=${this.netns}`, 'taskset', '-c', String(cpu), this.connections, ...args];
    return spawn('sh', ['-c', script, this.cgroup, ...command], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
  }

  /** Runs `connections` in the cgroup to its end. */
  async run(args: readonly string[]): Promise<Cost> {
    const child = this.start(args, 0);
    const text = readAll(child);
    const [code] = (await once(child, 'exit')) as [number | null];
    if (code !== 0) throw new Error(`connections ${args.join(' ')} ended with ${code}`);
    return JSON.parse(await text) as Cost;
  }

  [Symbol.dispose](): void {
    execFileSync('ip', ['netns', 'delete', basename(this.netns)]);
    execFileSync('umount', [this.bpffs]);
    rmSync(this.folder, { recursive: true });
    rmdirSync(this.cgroup);
  }
}

/** All that a process writes to its standard output. */
export async function readAll(child: ChildProcess): Promise<string> {
  let text = '';
  for await (const part of child.stdout ?? []) text += String(part);
  return text;
}

/** Programs that are attached over maps that hold a table, without anything of nftables. */
export interface SocketLb {
  readonly kernel: LinuxKernel;
  readonly writer: ServiceWriter;
  /** Milliseconds from the table to attached programs. */
  readonly time: number;
}

/** Loads a table and attaches the programs, as the agent does. */
export async function loadSocketLb(
  kernel: LinuxKernel,
  table: ForwardingTable,
  signal: AbortSignal,
): Promise<SocketLb> {
  const start = performance.now();
  const { maps } = await kernel.openMaps(neededSizes(table), signal);
  const settings = new Settings({
    maps: () => maps,
    hostNetns: () => 0n, // sockets are pods'
    udpSticky: seconds(60),
  });
  settings.apply(table);
  const writer = new ServiceWriter(maps, { clock: systemClock });
  const { failed } = writer.applyFull(table);
  if (failed.size > 0) throw new Error(`not written: ${[...failed.values()].map(String).join('; ')}`);
  await kernel.attach(signal);
  return { kernel, writer, time: performance.now() - start };
}
