import { HostError, ipFamilies, ipFamilyOf, millis, systemClock, UsageError } from '@switchyard/core';
import type { IpAddress, IpFamily } from '@switchyard/core';
import { createProber, startEchoServer, startSctpServers } from '@switchyard/lab';
import type { Lab, LabHost, LabNode, LabPod, Prober } from '@switchyard/lab';
import {
  inFamily,
  clientPodAddresses,
  clientPodBridge,
  type ScenarioFlow,
  secondNodeAddresses,
  endpointPods,
  nodeAddresses,
} from '@switchyard/scenarios';
import { flowsOf, servicesOf } from '../cases/scenario-cases.ts';
import { sequencePods } from '../cases/sequences/support/object-factory.ts';
import { takeTurn } from '../engine/error-pace.ts';
import type { ConformanceCase } from '../model/case.ts';

/**
 * Senders and endpoints of a lab. Every address that is an endpoint of any case has an echo server on all its ports. Probers run at the
 * sources of flows: the client outside, node1, a pod of node1 that is never an endpoint, and endpoints.
 */
export class LabHosts {
  readonly #lab: Lab;
  readonly #node1: LabNode;
  /** Addresses of each echo server by the name it gives. */
  readonly addressesByEcho: Map<string, readonly IpAddress[]> = new Map();
  readonly #hostsByAddress = new Map<IpAddress, LabHost>();
  readonly #probers = new Map<LabHost, Promise<Prober>>();
  readonly #turns = new Map<string, Promise<unknown>>();
  readonly #routed = new Set<IpAddress>();
  #clientPod: LabPod | undefined;

  private constructor(lab: Lab) {
    this.#lab = lab;
    const [node1] = lab.nodes;
    if (node1 === undefined) throw new HostError('conformance.lab', `lab ${lab.name} has no node`);
    this.#node1 = node1;
  }

  /** Adds all endpoints and senders to a new lab. */
  static async build(lab: Lab, fixtures: LabFixtures, signal: AbortSignal): Promise<LabHosts> {
    const hosts = new LabHosts(lab);
    for (const endpoint of fixtures.endpoints) await hosts.#addEndpoint(endpoint, signal);
    await hosts.#addSenders(fixtures.ownAddresses, signal);
    await hosts.#endpointsAnswer(fixtures.endpoints, signal);
    return hosts;
  }

  /** The pod of node1 that is never an endpoint. */
  get clientPod(): LabPod {
    if (this.#clientPod === undefined) throw new HostError('conformance.lab', 'the lab has no client pod yet');
    return this.#clientPod;
  }

  senderOf(flow: ScenarioFlow): { readonly host: LabHost; readonly source: string } {
    const family = ipFamilyOf(flow.to);
    const host = this.#senderHost(flow);
    if (flow.isFromItself || flow.to === '127.0.0.1' || flow.to === '::1') return { host, source: flow.to };
    // Masquerading uses node1's first address, so packets from the second one show whether it happened.
    return { host, source: flow.from === 'node' ? secondNodeAddresses[family] : (host.addresses[family] ?? '') };
  }

  /** The name that the echo server at this address gives. */
  echoAt(address: IpAddress): string {
    const found = [...this.addressesByEcho].find(([, addresses]) => addresses.includes(address));
    if (found === undefined)
      throw new HostError('conformance.fixture', `no echo server of the lab has the address ${address}`);
    return found[0];
  }

  /**
   * Runs work one at a time for each key. SCTP senders are raw sockets, which get the ICMP errors of all others with the same two
   * addresses, independent of the port.
   */
  alone<T>(key: string, work: () => Promise<T>): Promise<T> {
    return takeTurn(this.#turns, key, work);
  }

  async proberIn(host: LabHost, signal: AbortSignal): Promise<Prober> {
    const known = this.#probers.get(host);
    if (known !== undefined) return known;
    const prober = createProber(host, signal);
    this.#probers.set(host, prober);
    prober.catch(() => this.#probers.delete(host)); // the caller gets the error; the next call tries again
    return prober;
  }

  /** Makes the client outside send packets for these addresses to node1, as a load balancer would. */
  async routeFromOutside(addresses: readonly IpAddress[]): Promise<void> {
    const missing = addresses.filter((address) => needsRoute(address) && !this.#routed.has(address));
    if (missing.length === 0) return;
    for (const address of missing) this.#routed.add(address);
    await this.#lab.routeToNode(missing, this.#node1);
  }

  #senderHost(flow: ScenarioFlow): LabHost {
    if (flow.fromEndpoint === undefined) {
      return { outside: this.#lab.client, node: this.#node1, pod: this.clientPod }[flow.from];
    }
    const host = this.#hostsByAddress.get(flow.fromEndpoint);
    if (host === undefined) {
      throw new HostError('conformance.fixture', `no host of the lab has the sender's address ${flow.fromEndpoint}`);
    }
    return host;
  }

  async #addEndpoint(endpoint: EndpointFixture, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted(); // there may be fifty endpoints
    const { name, addresses, ports } = endpoint;
    const node = this.#lab.nodes.find((one) => one.name === endpoint.node);
    if (node === undefined) throw new HostError('conformance.fixture', `the lab has no ${endpoint.node} for ${name}`);
    const [first] = this.#lab.ipFamilies;
    const onNode = this.#lab.nodes.find((one) => first !== undefined && one.addresses[first] === addresses[first]);
    const host = onNode ?? (await this.#lab.addPod(node, name, addresses));
    startEchoServer(host, { pod: name, node: node.name, tcp: [...ports], udp: [...ports] });
    if (endpoint.hasSctp) await startSctpServers(host, name, signal);
    const all = Object.values(addresses);
    this.addressesByEcho.set(name, all);
    for (const one of all) this.#hostsByAddress.set(one, host);
  }

  async #addSenders(ownAddresses: ReadonlySet<IpAddress>, signal: AbortSignal): Promise<void> {
    const { ipFamilies: families } = this.#lab;
    const own = [...families.map((family) => secondNodeAddresses[family]), ...ownAddresses];
    for (const address of own) {
      signal.throwIfAborted();
      await addBehindOthers(this.#node1, address);
    }
    const addresses = Object.fromEntries(families.map((family) => [family, clientPodAddresses[family]]));
    this.#clientPod = await this.#lab.addPod(this.#node1, 'client-pod', addresses);
    await putBehindBridge(this.#clientPod);
    const hosts: readonly LabHost[] = [this.#lab.client, this.#node1, this.#clientPod];
    await Promise.all(hosts.map((host) => this.proberIn(host, signal)));
  }

  /** Waits until all echo servers answer. */
  async #endpointsAnswer(endpoints: readonly EndpointFixture[], signal: AbortSignal): Promise<void> {
    const prober = await this.proberIn(this.clientPod, signal);
    const until = systemClock.monotonic() + 30_000;
    for (const { addresses, ports, name } of endpoints) {
      const [address = ''] = Object.values(addresses);
      for (const protocol of ['tcp', 'udp'] as const) {
        for (;;) {
          const result = await prober.probe({ protocol, address, port: Math.max(...ports), timeout: 500 });
          if (result.status === 'answered') break;
          if (systemClock.monotonic() > until) {
            throw new HostError(
              'conformance.fixture',
              `the echo server ${name} at ${address} does not answer ${protocol}`,
            );
          }
          await systemClock.sleep(millis(50), signal);
        }
      }
    }
  }
}

/** Adds an address to a node that masquerading does not use: not the first on its interface. */
async function addBehindOthers(node: LabNode, address: string): Promise<void> {
  const lengthAndFlags = address.includes(':') ? '/128 nodad preferred_lft 0' : '/32';
  const added = await node.run('sh', ['-c', `ip addr add ${address}${lengthAndFlags} dev eth0`]);
  if (added.exitCode === 0) return;
  throw new HostError('conformance.lab', `cannot add ${address} to ${node.name}: ${added.stderr.trim()}`);
}

/** As with a bridge plug-in: the pod's packets come in by the bridge, not by the pod's own veth. */
async function putBehindBridge({ node, addresses }: LabPod): Promise<void> {
  const families = ipFamilies.filter((family) => addresses[family] !== undefined);
  const [first] = families;
  const hasV6 = families.includes('IPv6');
  const known = first === 'IPv4' ? `-4 route show ${addresses.IPv4}/32` : `-6 route show ${addresses.IPv6}/128`;
  const script = [
    'set -e',
    `cable=$(ip ${known} | sed 's/.* dev \\([^ ]*\\).*/\\1/')`,
    `ip link add dev ${clientPodBridge} type bridge stp_state 0 forward_delay 0 mcast_snooping 0`,
    ...(hasV6 ? [`ip -6 addr add fe80::1/64 dev ${clientPodBridge} nodad`] : []),
    `ip link set ${clientPodBridge} up`,
    ...(hasV6 ? ['ip -6 addr del fe80::1/64 dev "$cable"'] : []),
    `ip link set dev "$cable" master ${clientPodBridge}`,
    ...families.map((family) => moveRoute(family, addresses[family] ?? '', node.addresses[family] ?? '')),
  ];
  const done = await node.run('sh', ['-c', script.join('\n')]);
  if (done.exitCode === 0) return;
  throw new HostError('conformance.lab', `cannot put the client pod behind ${clientPodBridge}: ${done.stderr.trim()}`);
}

function moveRoute(family: IpFamily, address: string, source: string): string {
  if (family === 'IPv4') return `ip -4 route replace ${address}/32 dev ${clientPodBridge} src ${source}`;
  return [
    `ip -6 route del ${address}/128 dev "$cable"`,
    `ip -6 route add ${address}/128 dev ${clientPodBridge} src ${source}`,
  ].join('\n');
}

/** A pod, or a node, that stands for an endpoint: an echo server on every port that cases need. */
export interface EndpointFixture {
  /** Name in the answers of its echo server. */
  readonly name: string;
  /** `node1` or `node2`. */
  readonly node: string;
  /** Address in each family of the lab; the IPv6 address has the digits of the IPv4 one. */
  readonly addresses: Readonly<Partial<Record<IpFamily, IpAddress>>>;
  readonly ports: ReadonlySet<number>;
  /** Whether it also answers SCTP, on all ports. */
  readonly hasSctp: boolean;
}

/** Endpoints and addresses that some cases need. */
export interface LabFixtures {
  readonly endpoints: readonly EndpointFixture[];
  /** Addresses of Services that node1 also has itself. */
  readonly ownAddresses: ReadonlySet<IpAddress>;
}

/** Ports of `sequencePods`, for TCP, UDP and SCTP. */
const sequencePorts = [8080, 8081];

interface Place {
  readonly node: string;
  readonly ports: Set<number>;
  hasSctp: boolean;
}

/** Returns the endpoints of all scenarios among these cases that are for packets, and `sequencePods` if any case is a sequence. */
export function fixturesFor(cases: readonly ConformanceCase[], families: readonly IpFamily[]): LabFixtures {
  const scenarios = cases.flatMap((one) =>
    one.kind === 'scenario' && one.scenario.runs.kinds.includes('packets') ? [one.scenario] : [],
  );
  const places = new Map<string, Place>();
  const place = (key: string, node: string): Place => {
    const found = places.get(key) ?? { node, ports: new Set<number>(), hasSctp: false };
    places.set(key, found);
    return found;
  };
  for (const scenario of scenarios) {
    const isSctp = servicesOf(scenario).some(({ ports }) => ports.some(({ protocol }) => protocol === 'SCTP'));
    for (const [address, { node, ports }] of endpointPods(scenario)) {
      const at = place(ipv4Of(address), node);
      for (const port of ports) at.ports.add(port);
      at.hasSctp ||= isSctp;
    }
  }
  if (cases.some(({ kind }) => kind === 'sequence')) {
    for (const address of Object.values(sequencePods)) {
      const at = place(address, address.startsWith('10.244.1.') ? 'node1' : 'node2');
      for (const port of sequencePorts) at.ports.add(port);
      at.hasSctp = true;
    }
  }
  const endpoints = [...places].map(([key, { node, ports, hasSctp }]) => ({
    name: `echo-${key.replace('172.18.0', 'n').replace('10.244.', '').replace('.', '-')}`,
    node,
    ports,
    hasSctp,
    addresses: Object.fromEntries(families.map((family) => [family, inFamily(key, family)])),
  }));
  const toThemselves = scenarios.flatMap(flowsOf).filter(({ isFromItself }) => isFromItself);
  return { endpoints, ownAddresses: new Set(toThemselves.map(({ to }) => to)) };
}

/** The IPv4 address of the plan that a pod or node has in both families of the lab, by its digits. */
function ipv4Of(address: IpAddress): string {
  const v4 = address
    .replace(/^fd00:10:244:(\d+)::(\d+)$/, '10.244.$1.$2')
    .replace(/^fd00:172:18::(\d+)$/, '172.18.0.$1');
  if (/^(?:10\.244\.\d+|172\.18\.0)\.\d+$/.test(v4)) return v4;
  const why = 'it is in no pod or node network of the plan';
  throw new UsageError('conformance.fixture', `${address} cannot be an endpoint in the lab: ${why}`);
}

const nodeOwned: ReadonlySet<string> = new Set([
  ...Object.values(nodeAddresses).flatMap((byName) => Object.values(byName)),
  ...Object.values(secondNodeAddresses),
]);

/** Whether the client outside needs a route by node1 to an address: all but those in the nodes' network. */
export function needsRoute(address: IpAddress): boolean {
  return !nodeOwned.has(address);
}
