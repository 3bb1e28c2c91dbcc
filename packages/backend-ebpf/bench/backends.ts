import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Machine } from './machine.ts';
import type { Kind, Row } from './measure-backend.ts';

/** As the agent runs. */
const memoryFlags = ['--max-semi-space-size=1', '--heap-growing-percent=25', '--no-parallel-scavenge', '--expose-gc'];

/** One row, of a process of its own in the namespace of this run. */
export function measureBackend(machine: Machine, kind: Kind, services: number): Row {
  const program = fileURLToPath(new URL('measure-backend.ts', import.meta.url));
  const node = [
    '--conditions=@switchyard/source',
    ...memoryFlags,
    program,
    kind,
    String(services),
    machine.bpffs,
    machine.cgroup,
  ];
  const command = [`--net=${machine.netns}`, process.execPath, ...node];
  return JSON.parse(execFileSync('nsenter', command, { encoding: 'utf8', timeout: 300_000 })) as Row;
}
