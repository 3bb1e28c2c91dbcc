/**
 * Cost of an idle backend: user and system time of a process with reconciler, backend and all it follows, from 30 s
 * after its start on, beside the same of the nftables backend. All processes run at the same time, each with a lab of its own.
 *
 *   node --conditions=@switchyard/source bench/idle.ts [SERVICES...]
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const settled = 30_000;
const measured = 20_000;
/** The kernel counts in hundredths of a second. */
const tick = 10;
const kinds = ['ebpf', 'nftables'] as const;
const sizes = process.argv.length > 2 ? process.argv.slice(2) : ['50', '10000'];

/** Milliseconds of CPU so far: user and system time, fields 14 and 15 of proc_pid_stat(5). */
function cpuOf({ pid }: ChildProcess): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * tick;
}

function start(kind: string, services: string, index: number): ChildProcess {
  const program = fileURLToPath(new URL('idle-process.ts', import.meta.url));
  const flags = ['--conditions=@switchyard/source', '--max-semi-space-size=1', '--heap-growing-percent=25'];
  return spawn(process.execPath, [...flags, program, kind, services, `ebidle${index}`], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
}

const runs = sizes
  .flatMap((services) => kinds.map((kind) => ({ kind, services })))
  .map((run, index) => ({ ...run, child: start(run.kind, run.services, index) }));
try {
  for (const { kind, services, child } of runs) {
    const ended = once(child, 'exit').then(() => Promise.reject(new Error(`${kind} ${services} ended early`)));
    ended.catch(() => undefined);
    if (child.stdout !== null) await Promise.race([once(child.stdout, 'data'), ended]);
  }
  await setTimeout(settled);
  const before = runs.map(({ child }) => cpuOf(child));
  const begin = performance.now();
  await setTimeout(measured);
  const passed = performance.now() - begin;
  for (const [index, { kind, services, child }] of runs.entries()) {
    const cpuPercent = (cpuOf(child) - (before[index] ?? 0)) / (passed / 100);
    process.stdout.write(`${JSON.stringify({ kind, services, cpuPercent: Number(cpuPercent.toFixed(2)) })}\n`);
  }
} finally {
  // Each removes its lab when its input ends.
  for (const { child } of runs) child.stdin?.end();
  await Promise.all(runs.map(({ child }) => (child.exitCode === null ? once(child, 'exit') : undefined)));
}
