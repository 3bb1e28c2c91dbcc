import { InvariantError, ipFamilyOf, parseIp, tryParseIp } from '@switchyard/core';
import { icmpCounterFiles, icmpErrorsHeldBack, type LabNode, liftIcmpLimits, startCluster } from '@switchyard/lab';
import { nodeAddresses, type Scenario, type ScenarioFlow } from '@switchyard/scenarios';
import { flowsOf } from '../cases/scenario-cases.ts';
import { abilities, type ConformanceCase, type FamilyCell, familiesOfCell } from '../model/case.ts';
import type { TestEnvironment } from '../model/test-environment.ts';
import { traceFlow } from '../trace/trace-flow.ts';
import { healthPortOf, healthSeen } from './answers.ts';
import { ClusterFeed, createMarker, markerPort } from './cluster-feed.ts';
import { connectInLab } from './lab-connector.ts';
import { fixturesFor, LabHosts } from './lab-hosts.ts';
import { LabProxy } from './lab-proxy.ts';
import { MachineWatch } from './machine-watch.ts';
import { processorShare } from './processor-share.ts';
import type { ProxyProgram } from './proxy-program.ts';

export interface LabEnvironmentOptions {
  /** Name of the lab: [a-z0-9]{1,8}, unique on this machine. */
  readonly name: string;
  readonly cell: FamilyCell;
  readonly program: ProxyProgram;
  /** The cases that are going to run: the lab gets the endpoints they need. */
  readonly cases: readonly ConformanceCase[];
  /** The nodes keep Linux' limits on ICMP errors. Default: they send all, so that no reject looks like a drop. */
  readonly hasIcmpLimits?: boolean;
  /** One line at each step of the start. */
  readonly onProgress?: (text: string) => void;
}

/** Durations in pods' manifests are divided by ten. */
const workloadTimeScale = 0.1;

/** Pod addresses of the endpoint behind the marker. */
const markerAddresses = { IPv4: parseIp('10.244.2.251'), IPv6: parseIp('fd00:10:244:2::251') };

/**
 * Builds a lab with an API server and controllers, the endpoints and senders that the cases need, and no proxy yet: `reset` starts
 * it. What was built is taken down again when a step fails or `signal` aborts; later `signal` has no effect.
 */
export async function openLabEnvironment(
  { name, cell, program, cases, hasIcmpLimits = false, onProgress = () => undefined }: LabEnvironmentOptions,
  signal: AbortSignal,
): Promise<TestEnvironment> {
  const families = familiesOfCell(cell);
  await using stack = new AsyncDisposableStack();
  const shape = { nodes: 2, ipFamilies: families, timeScale: workloadTimeScale, hasDaemonSets: true };
  const cluster = stack.use(await startCluster({ name, ...shape, onProgress }, signal));
  const { lab } = cluster;
  if (!hasIcmpLimits) await Promise.all(lab.nodes.map(liftIcmpLimits));
  const fixtures = fixturesFor(cases, families);
  const addresses = Object.fromEntries(families.map((family) => [family, markerAddresses[family]]));
  const marked = { name: 'marker', node: 'node2', addresses, ports: new Set([markerPort]), hasSctp: false };
  const endpoints = [...fixtures.endpoints, marked];
  const hosts = await LabHosts.build(lab, { ...fixtures, endpoints }, signal);
  onProgress(`${endpoints.length} endpoints answer`);
  const watch = stack.use(MachineWatch.start(lab.client));
  const feed = new ClusterFeed(cluster.server, families);
  const marker = createMarker({ hosts, feed, families, endpoint: markerAddresses });
  const proxyOn = (node: LabNode, others: readonly LabProxy[]): LabProxy => {
    const kubeconfig = cluster.insideKubeconfig;
    const settings = { mode: program.about.dataplane, families, kubeconfig, node: node.nodeName };
    return new LabProxy({ program, node, marker, folder: `${lab.folder}/proxy-${node.name}`, settings, others });
  };
  const [node, ...otherNodes] = lab.nodes;
  if (node === undefined) throw new InvariantError('a lab of two nodes has none');
  const others = otherNodes.map((one) => proxyOn(one, []));
  const proxy = stack.use(proxyOn(node, others));
  const owned = stack.move();
  return {
    target: 'lab',
    ipFamilies: families,
    proxyUnderTest: program.about,
    can: new Set(abilities),
    proxy,
    lab,
    cluster,
    stepObstacle: () => undefined,
    obstacle: (one) => {
      const machine = program.obstacle(lab);
      if (machine !== undefined) return machine;
      if (one.kind !== 'scenario') return undefined;
      const { agent, runs } = one.scenario;
      return runs.kinds.includes('packets') ? program.lacks(agent) : (runs.because ?? 'not for real packets');
    },
    reset: async (agent, inner) => {
      await feed.put([], inner);
      await proxy.runWith(agent);
      await proxy.settled(inner);
    },
    put: async (moments, { wait }, inner) => {
      await hosts.routeFromOutside(moments.flatMap(({ scenario }) => outsideAddressesOf(scenario)));
      await feed.put(moments, inner);
      if (wait) await proxy.settled(inner);
    },
    connectorFor: (_scenario, flow, inner) => connectInLab(flow, hosts, inner),
    health: async (scenario, check, inner) => {
      const prober = await hosts.proberIn(lab.client, inner);
      const address = nodeAddresses[check.ipFamily]['node1'] ?? '';
      const port = healthPortOf(scenario, check.service);
      return healthSeen(await prober.probe({ protocol: 'http', address, port }), check);
    },
    // A family that the lab lacks has no file.
    icmpErrorsHeldBack: async () => icmpErrorsHeldBack((await node.run('cat', icmpCounterFiles)).stdout),
    machineBetween: (from, to, inner) => watch.between(from, to, inner),
    processorShare,
    trace: async (_scenario, flow, inner) => {
      const connector = await connectInLab(flow, hosts, inner);
      const { to: address, port, protocol } = flow;
      const source = tryParseIp(hosts.senderOf(flow).source);
      const packet = { family: ipFamilyOf(address), protocol, source, address, port };
      return traceFlow(node, packet, () => connector.attempts(1), inner);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function outsideAddressesOf(scenario: Scenario): readonly ScenarioFlow['to'][] {
  return flowsOf(scenario).flatMap(({ from, to }) => (from === 'outside' ? [to] : []));
}
