import { type BpfProgram, openPinnedLink, openProgramById } from '@switchyard/native';
import { enableRunStats, runStatistics } from '@switchyard/native/testing';
import { join } from 'node:path';
import { layoutVersion } from '../src/render/layouts.ts';
import { PinFolders } from '../src/kernel/programs/pin-folders.ts';
import { clusterIp, clusterOf, servicePort } from './large-table.ts';
import { loadSocketLb, type Machine } from './machine.ts';

/** Cost of one run of a program by the kernel's counters, in nanoseconds; counting is part of it. */
export interface ProgramCost {
  readonly what: string;
  readonly nanoseconds: number;
}

const calls = 10_000;
/** Number of measurements. The least counts, because other load on the machine only adds. */
const rounds = 5;

/** Programs of the socket path over a table of this size. */
export async function measurePrograms(
  machine: Machine,
  services: number,
  signal: AbortSignal,
): Promise<readonly ProgramCost[]> {
  await using kernel = machine.kernel();
  await loadSocketLb(kernel, clusterOf(services, { protocol: 'UDP' }), signal);
  const links = new PinFolders({ bpffs: machine.bpffs, ipFamily: 'IPv4', version: layoutVersion }).links;
  const cases = [
    { what: 'connect4, no Service', hook: 'connect4', args: ['udp', '127.0.0.1', '9'] },
    { what: 'connect4, cluster IP', hook: 'connect4', args: ['udp', clusterIp(services >> 1), String(servicePort)] },
    { what: 'sendmsg4, no Service', hook: 'sendmsg4', args: ['send', '127.0.0.1', '9'] },
    { what: 'sendmsg4, cluster IP', hook: 'sendmsg4', args: ['send', clusterIp(services >> 1), String(servicePort)] },
    { what: 'recvmsg4, a stranger', hook: 'recvmsg4', args: ['receive', '127.0.0.1', '9091'] },
  ];
  const costs: ProgramCost[] = [];
  using _ = enableRunStats();
  for (const { what, hook, args } of cases) {
    using link = openPinnedLink(join(links, hook));
    using program = link === undefined ? undefined : openProgramById(link.programId);
    if (program === undefined) throw new Error(`no program at ${hook}`);
    let least = Number.POSITIVE_INFINITY;
    for (let round = 0; round < rounds; round++) {
      const before = runStatistics(program);
      await machine.run([...args, String(calls)]);
      least = Math.min(least, perRun(program, before));
    }
    costs.push({ what, nanoseconds: least });
  }
  await kernel.remove(signal);
  return costs;
}

function perRun(program: BpfProgram, before: { readonly runs: bigint; readonly runTime: bigint }): number {
  const { runs, runTime } = runStatistics(program);
  return Number(runTime - before.runTime) / Number(runs - before.runs);
}
