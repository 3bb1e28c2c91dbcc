import {
  type IpAddress,
  type IpFamily,
  ipFamilies,
  ipFamilyOf,
  millis,
  parseCidr,
  parseIp,
  parsePort,
  type Protocol,
  seconds,
  serviceKey,
} from '@switchyard/core';
import { withFastDrain } from '@switchyard/loss';
import { healthProfile } from '../health-profile/health-profiles.ts';
import type { HealthProfile } from '../spec/health-profile.ts';
import type { LoadBalancerSpec, PortSpec, Target } from '../spec/load-balancer-spec.ts';

const nodeAddresses: Readonly<Record<IpFamily, string>> = { IPv4: '172.18.0.1', IPv6: 'fd00:172:18::1' };
const [virtual4, virtual6] = ['172.18.255.1', 'fd00:172:18::ff01'].map(parseIp) as [IpAddress, IpAddress];

/** The lab's nodes 1 and 2 of one family. */
export function nodeTargets(
  port: number,
  { ipFamily = 'IPv4', checkPort = 32080, draining, empty }: NodeTargetOptions = {},
): readonly Target[] {
  return [1, 2].map((number) => {
    const [node, address] = [`node${number}`, parseIp(`${nodeAddresses[ipFamily]}${number}`)];
    const check = { address, port: parsePort(checkPort), path: '/healthz' };
    const how = node === draining ? 'serving' : node === empty ? 'empty' : 'no';
    return { name: node, node, address, port: parsePort(port), check, draining: how };
  });
}

/** Differences between nodes. */
export interface NodeTargetOptions {
  readonly ipFamily?: IpFamily;
  readonly checkPort?: number;
  /** Name of the one that drains. */
  readonly draining?: string;
  /** Name of the one without an endpoint. */
  readonly empty?: string;
}

/** A Service port on the load balancer's addresses of the families its targets have. */
export function portSpec(port: number, targets: readonly Target[], protocol: Protocol = 'TCP'): PortSpec {
  const families = new Set(targets.map(({ address }) => ipFamilyOf(address)));
  const addresses = [virtual4, virtual6].filter((address) => families.has(ipFamilyOf(address)));
  return { port: parsePort(port), protocol, addresses, targets };
}

/** A load balancer for `default/NAME`: TCP port 80 on both nodes over IPv4, with what is given changed. */
export function exampleSpec(name: string, changes: Partial<LoadBalancerSpec> = {}): LoadBalancerSpec {
  const ports = changes.ports ?? [portSpec(80, nodeTargets(30080))];
  const addresses = [...new Set(ports.flatMap((port) => port.addresses))].sort();
  return {
    id: { cluster: 'kind', service: serviceKey('default', name) },
    addresses,
    path: 'proxy',
    ports,
    sourceRanges: [],
    sessionAffinity: { kind: 'none' },
    proxyProtocol: 'none',
    isWeighted: false,
    profile: healthProfile('cloud-provider-kind'),
    routes: [],
    ...changes,
  };
}

/** A profile that serves from nodes that were UP not long ago while none is. */
export const lastUpProfile: HealthProfile = healthProfile('cloud-provider-kind', {
  interval: seconds(2),
  downInterval: millis(500),
  fall: 1,
  whenNoneUp: 'lastUp',
  lastUpFor: seconds(30),
});

const dualStack = (port: number): readonly Target[] =>
  ipFamilies.flatMap((ipFamily) => nodeTargets(port, { ipFamily, checkPort: 10256 }));

/** Lists that are rendered in different ways. */
export const exampleSpecs: Readonly<Record<string, readonly LoadBalancerSpec[]>> = {
  'no-services': [],
  'local-policy': [exampleSpec('zeroapp')],
  'two-ports': [exampleSpec('web', { ports: [portSpec(80, nodeTargets(30080)), portSpec(443, nodeTargets(30443))] })],
  'dual-stack-affinity-and-source-ranges': [
    exampleSpec('cart', {
      ports: [portSpec(80, dualStack(30080))],
      sourceRanges: ['10.0.0.0/8', '192.0.2.0/24', '2001:db8::/32'].map(parseCidr),
      sessionAffinity: { kind: 'clientIP', timeout: seconds(10800) },
    }),
  ],
  'profiles-differ': [
    exampleSpec('slow'),
    exampleSpec('quick', {
      profile: healthProfile('cloud-provider-kind', {
        interval: millis(500),
        downInterval: millis(100),
        timeout: millis(250.4),
        connectTimeout: seconds(1),
        fall: 2,
        rise: 2,
      }),
    }),
  ],
  'last-up': [exampleSpec('web', { profile: lastUpProfile })],
  'last-up-with-a-draining-node': [
    exampleSpec('web', { profile: lastUpProfile, ports: [portSpec(80, nodeTargets(30080, { draining: 'node1' }))] }),
  ],
  'fast-drain': [
    exampleSpec('web', {
      profile: withFastDrain(healthProfile('aws-nlb-default')),
      isWeighted: true,
      ports: [
        portSpec(80, nodeTargets(30080, { draining: 'node1' })),
        portSpec(443, nodeTargets(30443, { empty: 'node1' })),
      ],
    }),
  ],
  'all-when-none-is-up': [
    exampleSpec('web', {
      profile: healthProfile('aws-nlb'),
      ports: [portSpec(80, nodeTargets(30080, { draining: 'node1' })), portSpec(53, nodeTargets(30053), 'UDP')],
    }),
  ],
  weighted: [
    exampleSpec('web', { isWeighted: true, ports: [portSpec(80, dualStack(30080)), portSpec(443, dualStack(30443))] }),
  ],
  'proxy-protocol-checked-on-the-traffic-port': [
    exampleSpec('web', { proxyProtocol: 'v2', ports: [portSpec(80, nodeTargets(30080, { checkPort: 30080 }))] }),
  ],
  'kernel-ports-are-only-checked': [
    exampleSpec('dns', {
      ports: [
        portSpec(53, dualStack(30053)),
        portSpec(53, dualStack(30053), 'UDP'),
        portSpec(54, dualStack(30054), 'UDP'),
        portSpec(99, dualStack(30099), 'SCTP'),
      ],
    }),
    exampleSpec('direct', { path: 'transparent', profile: lastUpProfile }),
  ],
  'endpoints-checked-on-their-node': [
    exampleSpec('no-node-ports', {
      ports: [
        portSpec(
          80,
          nodeTargets(8080, { checkPort: 10256 })
            .concat(nodeTargets(8080, { checkPort: 10256, ipFamily: 'IPv6' }))
            .map((target) => {
              const number = target.node.slice(4);
              const text = ipFamilyOf(target.address) === 'IPv4' ? `10.244.${number}.5` : `fd00:10:244:${number}::5`;
              const address = parseIp(text);
              return { ...target, name: `${target.node}:${address}`, address };
            }),
        ),
      ],
    }),
  ],
};
