import { InvariantError, type IpFamily, ipFamilyOf, parseIp, tryParseIp } from '@switchyard/core';
import {
  icmpCounterFiles,
  icmpErrorsHeldBack,
  type Lab,
  type LabCluster,
  type LabNode,
  startCluster,
} from '@switchyard/lab';
import { nodeAddresses, type Scenario, type ScenarioAgent, type ScenarioFlow } from '@switchyard/scenarios';
import { familiesOfCell } from '../cases/families-of-cell.ts';
import { flowsOf } from '../cases/scenario-parts.ts';
import type { TestEnvironment, FlowConnector, ScenarioMoment } from '../model/test-environment.ts';
import { traceFlow } from '../trace/trace-flow.ts';
import type { Ability, ConformanceCase, FamilyCell } from '../model/case.ts';
import { healthPortOf, healthSeen } from './answers.ts';
import { type LabFixtures, fixturesFor, type EndpointFixture } from './fixtures.ts';
import { ClusterFeed } from './cluster-feed.ts';
import { connectInLab } from './lab-connector.ts';
import { LabProxy } from './lab-proxy.ts';
import { Marker, markerPort } from './marker.ts';
import type { ProxyProgram } from './proxy-program.ts';
import { LabHosts } from './lab-hosts.ts';

/** Settings of a lab environment. */
export interface LabEnvironmentOptions {
  /** Name of the lab: [a-z0-9]{1,8}, unique on this machine. */
  readonly name: string;
  readonly cell: FamilyCell;
  readonly program: ProxyProgram;
  /** The cases that are going to run: the lab gets the endpoints they need. */
  readonly cases: readonly ConformanceCase[];
  /** One line at each step of the start. */
  readonly onProgress?: (text: string) => void;
}

/** Durations in pods' manifests are divided by ten. */
const workloadTimeScale = 0.1;

const abilities: readonly Ability[] = [
  'controlProxy',
  'configureProxy',
  'sendFromOutside',
  'changeNodes',
  'holdConnections',
  'holdSockets',
  'load',
  'workloads',
  'loadBalancer',
  'sctp',
  'rawPackets',
];

/** Endpoint behind the marker. */
const markerFixture: EndpointFixture = {
  name: 'marker',
  node: 'node2',
  addresses: { IPv4: parseIp('10.244.2.251'), IPv6: parseIp('fd00:10:244:2::251') },
  ports: new Set([markerPort]),
  hasSctp: false,
};

/**
 * Builds a lab with an API server and controllers, the endpoints and senders that the cases need, and no proxy yet: `reset` starts
 * it. What was built is taken down again when a step fails or `signal` aborts; later `signal` has no effect.
 */
export async function openLabEnvironment(
  options: LabEnvironmentOptions,
  signal: AbortSignal,
): Promise<TestEnvironment> {
  const families = familiesOfCell(options.cell);
  const { onProgress } = options;
  await using stack = new AsyncDisposableStack();
  const cluster = stack.use(
    await startCluster(
      {
        name: options.name,
        nodes: 2,
        ipFamilies: families,
        timeScale: workloadTimeScale,
        hasDaemonSets: true,
        ...(onProgress === undefined ? {} : { onProgress }),
      },
      signal,
    ),
  );
  const { lab } = cluster;
  const fixtures = withMarker(fixturesFor(options.cases, families), families);
  const hosts = await LabHosts.build(lab, fixtures, signal);
  onProgress?.(`${fixtures.endpoints.length} endpoints answer`);
  const environment = new LabEnvironment({ options, families, cluster, hosts });
  stack.use(environment.proxy);
  return Object.assign(environment, { owned: stack.move() });
}

function withMarker(fixtures: LabFixtures, families: readonly IpFamily[]): LabFixtures {
  const addresses = Object.fromEntries(families.map((family) => [family, markerFixture.addresses[family]]));
  return {
    ...fixtures,
    endpoints: [...fixtures.endpoints, { ...markerFixture, addresses: addresses as EndpointFixture['addresses'] }],
  };
}

interface Parts {
  readonly options: LabEnvironmentOptions;
  readonly families: readonly IpFamily[];
  readonly cluster: LabCluster;
  readonly hosts: LabHosts;
}

class LabEnvironment implements TestEnvironment {
  readonly target = 'lab';
  readonly ipFamilies: readonly IpFamily[];
  readonly proxyUnderTest: TestEnvironment['proxyUnderTest'];
  readonly can: ReadonlySet<Ability> = new Set(abilities);
  readonly proxy: LabProxy;
  readonly lab: Lab;
  readonly cluster: LabCluster;
  /** All parts in the order of construction; `openLabEnvironment` sets it. */
  owned: AsyncDisposableStack | undefined;
  readonly #program: ProxyProgram;
  readonly #hosts: LabHosts;
  readonly #feed: ClusterFeed;

  constructor({ options, families, cluster, hosts }: Parts) {
    const { lab } = cluster;
    const [node] = lab.nodes;
    if (node === undefined) throw new InvariantError('a lab of two nodes has none');
    this.ipFamilies = families;
    this.#program = options.program;
    this.proxyUnderTest = options.program.about;
    this.lab = lab;
    this.cluster = cluster;
    this.#hosts = hosts;
    this.#feed = new ClusterFeed(cluster.server, families);
    const place = { hosts, feed: this.#feed, families, endpoint: markerFixture.addresses };
    const marker = new Marker(place);
    const proxyOn = (one: LabNode, others: readonly LabProxy[]): LabProxy =>
      new LabProxy({
        program: options.program,
        node: one,
        marker,
        folder: `${lab.folder}/proxy-${one.name}`,
        settings: {
          mode: options.program.about.dataplane,
          families,
          kubeconfig: cluster.insideKubeconfig,
          node: one.nodeName,
        },
        others,
      });
    this.proxy = proxyOn(
      node,
      lab.nodes.slice(1).map((one) => proxyOn(one, [])),
    );
  }

  stepObstacle(): undefined {
    return undefined;
  }

  obstacle(one: ConformanceCase): string | undefined {
    const machine = this.#program.obstacle(this.lab);
    if (machine !== undefined) return machine;
    if (one.families === 'dual' ? this.ipFamilies.length < 2 : !this.ipFamilies.includes(one.families)) {
      return `the lab's cluster has only ${this.ipFamilies.join()}`;
    }
    if (one.kind !== 'scenario') return undefined;
    const { agent, runs } = one.scenario;
    if (!runs.kinds.includes('packets')) return runs.because ?? 'not for real packets';
    return this.#program.lacks(agent);
  }

  async reset(agent: ScenarioAgent, signal: AbortSignal): Promise<void> {
    await this.#feed.put([], signal);
    await this.proxy.runWith(agent);
    await this.proxy.settled(signal);
  }

  async put(
    moments: readonly ScenarioMoment[],
    { wait }: { readonly wait: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    await this.#hosts.routeFromOutside(moments.flatMap(({ scenario }) => outsideAddressesOf(scenario)));
    await this.#feed.put(moments, signal);
    if (wait) await this.proxy.settled(signal);
  }

  async connectorFor(_scenario: Scenario, flow: ScenarioFlow, signal: AbortSignal): Promise<FlowConnector> {
    return connectInLab(flow, this.#hosts, signal);
  }

  async health(
    scenario: Scenario,
    check: Parameters<TestEnvironment['health']>[1],
    signal: AbortSignal,
  ): Promise<string> {
    const prober = await this.#hosts.proberIn(this.lab.client, signal);
    const address = nodeAddresses[check.ipFamily]['node1'] ?? '';
    const result = await prober.probe({ protocol: 'http', address, port: healthPortOf(scenario, check.service) });
    return healthSeen(result, check);
  }

  async icmpErrorsHeldBack(): Promise<number | undefined> {
    const [node] = this.lab.nodes;
    // A family that the lab lacks has no file.
    const result = await node?.run('cat', icmpCounterFiles);
    return icmpErrorsHeldBack(result?.stdout ?? '');
  }

  async trace(scenario: Scenario, flow: ScenarioFlow, signal: AbortSignal): Promise<readonly string[]> {
    const [node] = this.lab.nodes;
    if (node === undefined) return [];
    const connector = await this.connectorFor(scenario, flow, signal);
    const { source } = this.#hosts.senderOf(flow);
    const { to: address, port, protocol } = flow;
    const packet = { family: ipFamilyOf(address), protocol, source: tryParseIp(source), address, port };
    return traceFlow(node, packet, () => connector.attempts(1), signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.owned?.disposeAsync();
  }
}

function outsideAddressesOf(scenario: Scenario): readonly ScenarioFlow['to'][] {
  return flowsOf(scenario).flatMap(({ from, to }) => (from === 'outside' ? [to] : []));
}
