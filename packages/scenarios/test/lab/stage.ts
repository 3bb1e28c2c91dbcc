import {
  createProber,
  type Lab,
  createLab,
  type LabHost,
  type LabNode,
  type LabPod,
  type Prober,
  startEchoServer,
  startSctpServers,
} from '@switchyard/lab';
import { type IpAddress, ipFamilies, ipFamilyOf, millis, parseIp, systemClock } from '@switchyard/core';
import {
  clientPodAddresses,
  clientPodBridge,
  endpointPods,
  nodeAddresses,
  type Scenario,
  type ScenarioFlow,
  secondNodeAddresses,
} from '../../src/index.ts';
import { ipv6TwinOf } from '../../src/other-family.ts';
import { LabAgent } from './lab-agent.ts';

/** What leaves from node1's second address shows whether it was masqueraded, because that means the first. */
const nodeSource = secondNodeAddresses;

/** Below the kernel's own choice, and where nobody listens. */
const [firstPort, lastPort] = [12_000, 29_999];

interface Place {
  readonly address: IpAddress;
  readonly node: string;
  readonly ports: Set<number>;
}

/**
 * The lab all scenarios share: node1 with the agent under test, node2 that only routes, an echo server at every address
 * that is an endpoint in any scenario, on all its ports, and probers where flows come from. Always both families.
 */
export class Stage implements AsyncDisposable {
  readonly lab: Lab;
  readonly agent: LabAgent;
  /** Addresses of each echo server by the name it gives. */
  readonly addressesByEcho = new Map<string, readonly IpAddress[]>();
  readonly #hostsByAddress = new Map<IpAddress, LabHost>();
  readonly #probers = new Map<LabHost, Promise<Prober>>();
  readonly #nextPorts = new Map<LabHost, number>();
  #clientPod: LabPod | undefined;

  private constructor(lab: Lab, agent: LabAgent) {
    this.lab = lab;
    this.agent = agent;
  }

  /** Builds everything the scenarios need; the lab's name must be free. */
  static async open(name: string, scenarios: readonly Scenario[], signal: AbortSignal): Promise<Stage> {
    const lab = await createLab({ name, nodes: 2, ipFamilies }, signal);
    const [node1] = lab.nodes;
    if (node1 === undefined) throw new Error('the lab has no node');
    const stage = new Stage(lab, await LabAgent.create(node1, `${lab.folder}/manifests`));
    try {
      await stage.#addEchoServers(scenarios, signal);
      await stage.#addClients(scenarios, signal);
      return stage;
    } catch (error) {
      await stage[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Where a flow starts, and the address it is sent from. */
  senderOf(flow: ScenarioFlow): { readonly host: LabHost; readonly source: string } {
    const family = ipFamilyOf(flow.to);
    const host = this.#senderHost(flow);
    if (flow.isFromItself || flow.to === '127.0.0.1' || flow.to === '::1') return { host, source: flow.to };
    return { host, source: flow.from === 'node' ? nodeSource[family] : (host.addresses[family] ?? '') };
  }

  /**
   * A port that no attempt from this host has had. The kernel's choice would, now and then, repeat one, and the packet would
   * follow the connection tracking entry of an earlier state.
   */
  freshPort(host: LabHost): number {
    const port = this.#nextPorts.get(host) ?? firstPort;
    this.#nextPorts.set(host, port < lastPort ? port + 1 : firstPort);
    return port;
  }

  async proberIn(host: LabHost, signal: AbortSignal): Promise<Prober> {
    const prober = this.#probers.get(host) ?? createProber(host, signal);
    this.#probers.set(host, prober);
    return prober;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.agent[Symbol.asyncDispose]();
    await this.lab[Symbol.asyncDispose]();
  }

  #senderHost(flow: ScenarioFlow): LabHost {
    const endpoint = flow.fromEndpoint === undefined ? undefined : this.#hostsByAddress.get(flow.fromEndpoint);
    const host =
      flow.fromEndpoint === undefined
        ? { outside: this.lab.client, node: this.lab.nodes[0], pod: this.#clientPod }[flow.from]
        : endpoint;
    if (host === undefined) throw new Error(`nobody in the lab can send from ${flow.fromEndpoint ?? flow.from}`);
    return host;
  }

  async #addEchoServers(scenarios: readonly Scenario[], signal: AbortSignal): Promise<void> {
    const sctpPlaces = placesOf(scenarios.filter(hasSctp));
    for (const { address, node: nodeName, ports } of placesOf(scenarios).values()) {
      const twin = ipv6TwinOf(address);
      const node = this.lab.nodes.find(({ name }) => name === nodeName);
      if (twin === undefined || node === undefined) throw new Error(`no place in the lab for ${address}`);
      const onNode = this.lab.nodes.find((one) => one.addresses.IPv4 === address);
      const name = `echo-${address.split('.').slice(2).join('-')}`;
      const host = onNode ?? (await this.lab.addPod(node, name, { IPv4: address, IPv6: twin }));
      startEchoServer(host, { pod: name, node: nodeName, tcp: [...ports], udp: [...ports] });
      if (sctpPlaces.has(address)) await startSctpServers(host, name, signal);
      this.addressesByEcho.set(name, [address, twin]);
      for (const one of [address, twin]) this.#hostsByAddress.set(one, host);
    }
  }

  async #addClients(scenarios: readonly Scenario[], signal: AbortSignal): Promise<void> {
    const [node1] = this.lab.nodes;
    if (node1 === undefined) throw new Error('the lab has no node');
    const own = [...Object.values(nodeSource), ...calledByItself(scenarios)];
    for (const address of own) await addBehindOthers(node1, address);
    this.#clientPod = await this.lab.addPod(node1, 'client-pod', clientPodAddresses);
    await putBehindBridge(this.#clientPod);
    await this.lab.routeToNode([...externalAddresses(scenarios)], node1);
    const hosts: readonly LabHost[] = [this.lab.client, node1, this.#clientPod];
    await Promise.all(hosts.map((host) => this.proberIn(host, signal)));
    await this.#echoServersAnswer(scenarios, signal);
  }

  /** Servers start at their own pace. */
  async #echoServersAnswer(scenarios: readonly Scenario[], signal: AbortSignal): Promise<void> {
    const prober = await this.proberIn(this.#clientPod ?? this.lab.client, signal);
    const until = systemClock.monotonic() + 30_000;
    for (const { address, ports } of placesOf(scenarios).values()) {
      for (const protocol of ['tcp', 'udp'] as const) {
        for (;;) {
          const result = await prober.probe({ protocol, address, port: Math.max(...ports), timeout: 500 });
          if (result.status === 'answered') break;
          if (systemClock.monotonic() > until) throw new Error(`the echo server at ${address} does not answer`);
          await systemClock.sleep(millis(50), signal);
        }
      }
    }
  }
}

function hasSctp({ services, steps }: Scenario): boolean {
  const put = steps.flatMap((step) => (step.kind === 'putService' ? [step.service] : []));
  return [...services, ...put].some(({ ports }) => ports.some(({ protocol }) => protocol === 'SCTP'));
}

/** Every IPv4 endpoint of the scenarios and all its ports; the IPv6 ones are their twins. */
function placesOf(scenarios: readonly Scenario[]): ReadonlyMap<IpAddress, Place> {
  const places = new Map<IpAddress, Place>();
  for (const scenario of scenarios) {
    for (const [address, { node, ports }] of endpointPods(scenario)) {
      if (ipFamilyOf(address) !== 'IPv4') continue;
      const place = places.get(address) ?? { address, node, ports: new Set<number>() };
      for (const port of ports) place.ports.add(port);
      places.set(address, place);
    }
  }
  return places;
}

/** An address of a node that is never the one to masquerade with: not the first on its interface. */
async function addBehindOthers(node: LabNode, address: string): Promise<void> {
  const lengthAndFlags = address.includes(':') ? '/128 nodad preferred_lft 0' : '/32';
  const added = await node.run('sh', ['-c', `ip addr add ${address}${lengthAndFlags} dev eth0`]);
  if (added.exitCode !== 0) throw new Error(`cannot add ${address} to ${node.name}: ${added.stderr}`);
}

/** As with a bridge plug-in: what the pod sends comes in by the bridge, not by the pod's own cable. */
async function putBehindBridge({ node, addresses }: LabPod): Promise<void> {
  const { IPv4: v4 = '', IPv6: v6 = '' } = addresses;
  const script = [
    'set -e',
    `cable=$(ip -4 route show ${v4}/32 | sed 's/.* dev \\([^ ]*\\).*/\\1/')`,
    `ip link add dev ${clientPodBridge} type bridge stp_state 0 forward_delay 0 mcast_snooping 0`,
    `ip -6 addr add fe80::1/64 dev ${clientPodBridge} nodad`,
    `ip link set ${clientPodBridge} up`,
    `ip -6 addr del fe80::1/64 dev "$cable"`,
    `ip link set dev "$cable" master ${clientPodBridge}`,
    `ip -4 route replace ${v4}/32 dev ${clientPodBridge} src ${node.addresses.IPv4}`,
    `ip -6 route del ${v6}/128 dev "$cable"`,
    `ip -6 route add ${v6}/128 dev ${clientPodBridge} src ${node.addresses.IPv6}`,
  ];
  const done = await node.run('sh', ['-c', script.join('\n')]);
  if (done.exitCode !== 0) throw new Error(`cannot put the client pod behind ${clientPodBridge}: ${done.stderr}`);
}

/** Addresses of Services that are to be node1's own as well. */
function calledByItself(scenarios: readonly Scenario[]): ReadonlySet<IpAddress> {
  const flows = scenarios.flatMap(({ steps }) => steps.flatMap((step) => (step.kind === 'flow' ? [step.flow] : [])));
  return new Set(flows.filter(({ isFromItself }) => isFromItself).map(({ to }) => to));
}

/** Where outside flows go that is not an address of the node network: needs a route at the client. */
function externalAddresses(scenarios: readonly Scenario[]): ReadonlySet<IpAddress> {
  const nodes = new Set(
    [
      ...Object.values(nodeAddresses).flatMap((byName) => Object.values(byName)),
      ...Object.values(secondNodeAddresses),
    ].map((one) => parseIp(one)),
  );
  const flows = scenarios.flatMap(({ steps }) => steps.flatMap((step) => (step.kind === 'flow' ? [step.flow] : [])));
  return new Set(flows.filter(({ from, to }) => from === 'outside' && !nodes.has(to)).map(({ to }) => to));
}
