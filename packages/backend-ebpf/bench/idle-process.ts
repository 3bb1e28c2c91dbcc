/*
 * A reconciler with one IPv4 backend that has nothing to do, in a lab of its own. Says when all is in the kernel; ends with its input.
 * Started by `idle.ts`.
 *
 *   idle-process.ts ebpf|nftables SERVICES LAB
 */
import { once } from 'node:events';
import { nftablesBackend } from '@switchyard/backend-nftables';
import type { ClusterEvent } from '@switchyard/core';
import { type HealingParts, HealingRun, TimedLogger } from '@switchyard/core/testing';
import { createLab } from '@switchyard/lab';
import { ebpfBackend } from '../src/index.ts';
import { driftCluster } from '../test/privileged/drift-run.ts';

class IdleRun extends HealingRun {
  static async start(backend: HealingParts['backends'][number], cluster: readonly ClusterEvent[]): Promise<IdleRun> {
    const run = new IdleRun({ logger, backends: [backend], calm: 0, patience: 120_000 });
    await run.fill(cluster);
    return run;
  }

  protected override damage(): Promise<never> {
    return Promise.reject(new Error('this process has no damage'));
  }
}

const [kind = '', services = '', name = ''] = process.argv.slice(2);
const { signal } = new AbortController();
const logger = new TimedLogger();
await using lab = await createLab({ name, nodes: 1, ipFamilies: ['IPv4'] }, signal);
const [node] = lab.nodes;
const { cgroupPath: cgroup, bpffsPath: bpffs } = node ?? {};
if (node === undefined || cgroup === undefined || bpffs === undefined) throw new Error(lab.limitations.join(' '));
const netns = `/run/netns/${node.namespace}`;
const host = { logger, netns };
const backend =
  kind === 'nftables'
    ? await nftablesBackend.open(host, 'IPv4', signal)
    : await ebpfBackend.open(
        { ...host, cgroup, bpffs, interfaces: [], northSouth: 'tc', socketLb: 'all' },
        'IPv4',
        signal,
      );
await using _ = await IdleRun.start(backend, driftCluster(Number(services), 10));
process.stdout.write('ready\n');
process.stdin.resume();
await once(process.stdin, 'end');
