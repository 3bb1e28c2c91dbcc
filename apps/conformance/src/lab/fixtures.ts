import { type IpAddress, type IpFamily, ipFamilyOf, parseIp, UsageError } from '@switchyard/core';
import { endpointPods, nodeAddresses, type Scenario, secondNodeAddresses } from '@switchyard/scenarios';
import { flowsOf, servicesOf } from '../cases/scenario-parts.ts';
import { sequencePods } from '../cases/sequence-pods.ts';
import type { ConformanceCase } from '../model/case.ts';

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

/** Returns the endpoints of all scenarios among these cases, and `sequencePods` if any case is a sequence. */
export function fixturesFor(cases: readonly ConformanceCase[], families: readonly IpFamily[]): LabFixtures {
  const scenarios = cases.flatMap((one) => (one.kind === 'scenario' ? [one.scenario] : []));
  const places = new Map<string, Place>();
  const place = (key: string, node: string): Place => {
    const found = places.get(key) ?? { node, ports: new Set<number>(), hasSctp: false };
    places.set(key, found);
    return found;
  };
  for (const scenario of scenarios) {
    const isSctp = servicesOf(scenario).some(({ ports }) => ports.some(({ protocol }) => protocol === 'SCTP'));
    for (const [address, { node, ports }] of endpointPods(scenario)) {
      const at = place(hostPartOf(address), node);
      for (const port of ports) at.ports.add(port);
      at.hasSctp ||= isSctp;
    }
  }
  if (cases.some(({ kind }) => kind === 'sequence')) {
    for (const address of Object.values(sequencePods)) {
      const at = place(hostPartOf(address), address.startsWith('10.244.1.') ? 'node1' : 'node2');
      for (const port of sequencePorts) at.ports.add(port);
      at.hasSctp = true;
    }
  }
  const endpoints = [...places].map(([key, { node, ports, hasSctp }]) => ({
    name: `echo-${key}`,
    node,
    ports,
    hasSctp,
    addresses: Object.fromEntries(families.map((family) => [family, addressOf(key, family)])),
  }));
  return { endpoints, ownAddresses: calledByItself(scenarios) };
}

/** The two numbers that an address of the plan shows in both families: `1-5` of 10.244.1.5 and fd00:10:244:1::5; `n-11` of a node. */
function hostPartOf(address: IpAddress): string {
  const isV4 = ipFamilyOf(address) === 'IPv4';
  const pod = (isV4 ? /^10\.244\.(\d+)\.(\d+)$/ : /^fd00:10:244:(\d+)::(\d+)$/).exec(address);
  if (pod !== null) return `${pod[1]}-${pod[2]}`;
  const node = (isV4 ? /^172\.18\.0\.(\d+)$/ : /^fd00:172:18::(\d+)$/).exec(address);
  if (node !== null) return `n-${node[1]}`;
  throw new UsageError(
    'conformance.fixture',
    `${address} cannot be an endpoint in the lab: it is in no pod or node network of the plan`,
  );
}

function addressOf(key: string, family: IpFamily): IpAddress {
  const [net = '', host = ''] = key.split('-');
  const isV4 = family === 'IPv4';
  if (net === 'n') return parseIp(isV4 ? `172.18.0.${host}` : `fd00:172:18::${host}`);
  return parseIp(isV4 ? `10.244.${net}.${host}` : `fd00:10:244:${net}::${host}`);
}

function calledByItself(scenarios: readonly Scenario[]): ReadonlySet<IpAddress> {
  return new Set(
    scenarios
      .flatMap(flowsOf)
      .filter(({ isFromItself }) => isFromItself)
      .map(({ to }) => to),
  );
}

const nodeOwned: ReadonlySet<string> = new Set([
  ...Object.values(nodeAddresses).flatMap((byName) => Object.values(byName)),
  ...Object.values(secondNodeAddresses),
]);

/** Whether the client outside needs a route by node1 to an address: all but those in the nodes' network. */
export function needsRoute(address: IpAddress): boolean {
  return !nodeOwned.has(address);
}
