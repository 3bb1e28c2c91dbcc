import { once } from 'node:events';
import { createLab, type LabHost, type LabNode, type LabPod } from '@switchyard/lab';
import { clusterIp, clusterOf, endpointPort, servicePort } from './large-table.ts';
import type { Cost } from './machine.ts';
import {
  inOrder,
  type Load,
  loadEbpf,
  loadIptables,
  loadMasquerade,
  loadNftables,
  loadSocketPrograms,
  runIn,
} from './nodes.ts';

/** Cost of one way to reach a pod, in microseconds of connect(). */
export interface ConnectFigures {
  readonly what: string;
  /** Of the medians of the rounds. */
  readonly median: number;
  /** Of the medians too. */
  readonly least: number;
  /** Median of the rounds' ratios to the baseline of the same round. */
  readonly ratio: number;
  /** Baseline of the comparison. */
  readonly baseline: string;
}

/** One way to reach a pod. */
interface Way {
  readonly what: string;
  readonly baseline: string;
  readonly from: LabHost;
  readonly address: string;
  readonly port: number;
}

const connects = 1500;
const nodePort = 30_080;

/** A node with a client pod and one that answers. */
interface Stage {
  readonly node: LabNode;
  readonly client: LabPod;
  readonly server: string;
}

/**
 * Connects to a pod of the same node directly and through a Service in the middle of a large table, and from outside the cluster, each
 * way on a node of its own; the ways take turns, round by round.
 */
export async function measureConnects(
  connections: string,
  services: number,
  rounds: number,
  signal: AbortSignal,
): Promise<readonly ConnectFigures[]> {
  await using lab = await createLab({ name: 'ebpfben', nodes: loads(services).length, ipFamilies: ['IPv4'] }, signal);
  const stages: Stage[] = [];
  for (const [index, load] of loads(services).entries()) {
    const node = lab.nodes[index];
    if (node === undefined) throw new Error('a node is missing');
    const server = await lab.addPod(node, `server${index}`);
    const address = String(server.addresses.IPv4);
    const listening = server.spawn('taskset', ['-c', '1', connections, 'serve', String(endpointPort)]);
    await Promise.race([once(listening.child, 'spawn'), listening.ended]);
    await load(node, clusterOf(services, { real: { pods: [address], nodePort } }), lab.folder, address);
    await runIn(lab.client, 'ip', ['route', 'add', `${address}/32`, 'via', String(node.addresses.IPv4)]);
    stages.push({ node, client: await lab.addPod(node, `client${index}`), server: address });
  }
  const ways = waysOf(stages, lab.client, clusterIp(services >> 1));
  const times = ways.map((): number[] => []);
  for (let round = -1; round < rounds; round++) {
    for (const [index, { from, address, port }] of ways.entries()) {
      const text = await runIn(from, 'taskset', [
        '-c',
        '0',
        connections,
        'tcp',
        address,
        String(port),
        String(connects),
      ]);
      const { median } = JSON.parse(text) as Cost;
      if (round >= 0) times[index]?.push(median / 1000);
    }
  }
  return ways.map(({ what, baseline }, index) => {
    const own = times[index] ?? [];
    const base = times[ways.findIndex((way) => way.what === baseline)] ?? [];
    const ratio = medianOf(own.map((time, round) => time / (base[round] ?? Number.NaN)));
    return { what, baseline, median: medianOf(own), least: Math.min(...own), ratio };
  });
}

/** How each node is programmed. */
function loads(services: number): readonly ((...args: [...Parameters<Load>, pod: string]) => Promise<void>)[] {
  return [
    async () => undefined,
    loadEbpf('tc'),
    loadEbpf('nftables'),
    loadNftables,
    (node, table, folder, pod) => loadIptables(services, pod)(node, table, folder),
    loadSocketPrograms,
    loadMasquerade,
    inOrder(loadMasquerade, loadEbpf('tc')),
    inOrder(loadMasquerade, loadNftables),
  ];
}

type Stages = readonly [Stage, Stage, Stage, Stage, Stage, Stage, Stage, Stage, Stage];

function waysOf(stages: readonly Stage[], outside: LabHost, vip: string): readonly Way[] {
  const [plain, tc, rules, nft, ipt, alone, cni, cniTc, cniNft] = stages as Stages;
  const direct = (what: string, { client, server }: Stage): Way => ({
    what,
    baseline: 'direct',
    from: client,
    address: server,
    port: endpointPort,
  });
  const service = (what: string, { client }: Stage, baseline: string): Way => ({
    what,
    baseline,
    from: client,
    address: vip,
    port: servicePort,
  });
  const routed = (what: string, { server }: Stage): Way => ({
    what,
    baseline: what,
    from: outside,
    address: server,
    port: endpointPort,
  });
  const nodePortOf = (what: string, { node }: Stage, baseline = 'outside, routed'): Way => ({
    what,
    baseline,
    from: outside,
    address: String(node.addresses.IPv4),
    port: nodePort,
  });
  return [
    direct('direct', plain),
    service('cluster IP, socket programs alone', alone, 'direct'),
    direct('direct, ebpf (tc)', tc),
    service('cluster IP, ebpf (tc)', tc, 'direct, ebpf (tc)'),
    direct('direct, ebpf (nftables)', rules),
    service('cluster IP, ebpf (nftables)', rules, 'direct, ebpf (nftables)'),
    service('cluster IP, nftables', nft, 'direct'),
    service('cluster IP, iptables', ipt, 'direct'),
    routed('outside, routed', plain),
    nodePortOf('NodePort, ebpf (tc)', tc),
    nodePortOf('NodePort, ebpf (nftables)', rules),
    nodePortOf('NodePort, nftables', nft),
    // A CNI that masquerades makes the kernel track connections, also without a proxy.
    direct('direct, CNI', cni),
    service('cluster IP, CNI, ebpf (tc)', cniTc, 'direct, CNI'),
    service('cluster IP, CNI, nftables', cniNft, 'direct, CNI'),
    routed('outside, CNI, routed', cni),
    nodePortOf('NodePort, CNI, ebpf (tc)', cniTc, 'outside, CNI, routed'),
    nodePortOf('NodePort, CNI, nftables', cniNft, 'outside, CNI, routed'),
  ];
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
