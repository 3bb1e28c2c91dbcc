import { nftablesTraits } from '../../src/traits.ts';
import {
  explain,
  type Flow,
  type ForwardingTable,
  type IpFamily,
  parseCidr,
  type PodDetector,
  sourceClassOf,
} from '@switchyard/core';
import {
  comparableVerdict,
  type EndpointSpec,
  flow,
  situation,
  type SituationOptions,
  type SituationSpec,
} from '@switchyard/core/testing';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FakeNft } from '../../src/testing/fake-nft.ts';
import { tracePacket } from '../../src/testing/trace-packet.ts';
import { Driven } from './support.ts';

/** Addresses of a family; few, so that they collide. */
interface Plan {
  readonly family: IpFamily;
  readonly cluster: (index: number) => string;
  readonly external: (index: number) => string;
  readonly pod: (node: number, index: number) => string;
  readonly node: string;
  readonly loopback: string;
  readonly podCidr: string;
  readonly everything: string;
  readonly nodeCidr: string;
  readonly serviceCidr: string;
  /** Some of a Service's source ranges: two of them overlap, one is of the other family. */
  readonly ranges: readonly string[];
}

const plans: readonly Plan[] = [
  {
    family: 'IPv4',
    cluster: (index) => `10.96.0.${index + 1}`,
    external: (index) => `198.51.100.${index + 1}`,
    pod: (node, index) => `10.244.${node}.${index + 1}`,
    node: '192.0.2.1',
    loopback: '127.0.0.1',
    podCidr: '10.244.0.0/16',
    everything: '0.0.0.0/0',
    nodeCidr: '192.0.2.0/24',
    serviceCidr: '10.96.0.0/12',
    ranges: ['10.244.0.0/16', '10.244.1.0/24', '192.0.2.0/24', '203.0.113.9/32', '2001:db8:1::/64'],
  },
  {
    family: 'IPv6',
    cluster: (index) => `fd00:10:96::${index + 1}`,
    external: (index) => `2001:db8:7::${index + 1}`,
    pod: (node, index) => `fd00:10:244:${node}::${index + 1}`,
    node: '2001:db8::1',
    loopback: '::1',
    podCidr: 'fd00:10:244::/48',
    everything: '::/0',
    nodeCidr: '2001:db8::/64',
    serviceCidr: 'fd00:10:96::/112',
    ranges: ['fd00:10:244::/48', 'fd00:10:244:1::/64', '2001:db8::/64', '2001:db8:1::9/128', '203.0.113.0/24'],
  },
];

const policy = fc.constantFrom('Cluster', 'Local');
const protocol = fc.constantFrom('TCP', 'UDP', 'SCTP');

function endpointArbitrary(plan: Plan): fc.Arbitrary<EndpointSpec> {
  return fc
    .record({ node: fc.integer({ min: 1, max: 2 }), index: fc.nat(3), state: fc.nat(4) })
    .map(({ node, index, state }) => ({
      ip: plan.pod(node, index),
      node: `n${node}`,
      ...(state === 1 ? { terminating: true } : {}),
      ...(state === 2 ? { ready: false, serving: false } : {}),
    }));
}

function serviceArbitrary(plan: Plan, index: number): fc.Arbitrary<SituationSpec> {
  return fc
    .record({
      protocol,
      hasNodePort: fc.boolean(),
      externals: fc.subarray([0, 1]),
      loadBalancers: fc.subarray([1, 2]),
      ranges: fc.subarray([...plan.ranges]),
      external: policy,
      internal: policy,
      endpoints: fc.uniqueArray(endpointArbitrary(plan), { maxLength: 5, selector: ({ ip }) => ip }),
    })
    .map((spec): SituationSpec => ({
      clusterIps: [plan.cluster(index)],
      ports: [{ port: 80, protocol: spec.protocol, ...(spec.hasNodePort ? { nodePort: 30000 + index } : {}) }],
      type: spec.hasNodePort || spec.loadBalancers.length > 0 ? 'LoadBalancer' : 'ClusterIP',
      externalIps: spec.externals.map(plan.external),
      loadBalancerIps: spec.loadBalancers.map(plan.external),
      sourceRanges: spec.ranges,
      external: spec.external,
      internal: spec.internal,
      endpoints: spec.endpoints,
    }));
}

function tableArbitrary(plan: Plan): fc.Arbitrary<ForwardingTable> {
  const services = fc.tuple(fc.subarray([0, 1, 2]), ...[0, 1, 2].map((index) => serviceArbitrary(plan, index)));
  const options = fc.record({
    masqueradeAll: fc.boolean(),
    podDetector: fc.constantFrom<PodDetector>(
      { kind: 'cidr', cidr: parseCidr(plan.podCidr) },
      { kind: 'none' },
      { kind: 'interface', name: 'cni0' },
      { kind: 'interfacePrefix', prefix: 'veth' },
    ),
    nodePortCidrs: fc.subarray([plan.everything, plan.nodeCidr]),
    hasServiceCidr: fc.boolean(),
    nodeAddresses: fc.subarray([plan.node]),
  });
  return fc.tuple(services, options).map(([[present, ...specs], chosen]) => {
    const spec: SituationOptions = {
      ...chosen,
      ipFamily: plan.family,
      ...(chosen.hasServiceCidr ? { serviceCidrs: [plan.serviceCidr] } : {}),
    };
    return situation(Object.fromEntries(present.map((index) => [`s${index}`, specs[index]!])), spec);
  });
}

/** Every destination worth asking about, from every class of source, and from a pod that is itself an endpoint. */
function flowsOf(plan: Plan): ReturnType<typeof flow>[] {
  const at = (address: string, port: number, proto: string): string =>
    `${address.includes(':') ? `[${address}]` : address}:${port}/${proto}`;
  const addresses = [
    plan.cluster(0),
    plan.cluster(1),
    plan.cluster(2),
    plan.cluster(9),
    ...[0, 1, 2, 3].map(plan.external),
  ];
  return (['TCP', 'UDP', 'SCTP'] as const).flatMap((proto) => {
    const vips = addresses.flatMap((address) => [at(address, 80, proto), at(address, 81, proto)]);
    const local = [plan.node, plan.loopback, plan.external(0)].flatMap((address) =>
      [80, 30000, 30001, 30002].map((port) => at(address, port, proto)),
    );
    return (['pod', 'node', 'outside'] as const).flatMap((from) => [
      ...vips.map((to) => flow(from, to)),
      ...local.map((to) => flow(from, to, { isLocal: true })),
      ...(from === 'pod' ? vips.map((to) => flow(from, to, { source: plan.pod(1, 0) })) : []),
      ...(from === 'node' ? vips.map((to) => flow(from, to, { source: plan.external(1) })) : []),
    ]);
  });
}

/** With pods detected by interface, only the interface decides; packets of the node have none. */
function withInterface(table: ForwardingTable, one: Flow, index: number): Flow {
  const { kind } = table.podDetector;
  if (one.from === 'node' || (kind !== 'interface' && kind !== 'interfacePrefix')) return one;
  const incomingInterface = ['cni0', 'veth12', 'eth0', 'cni01', 'vet'][index % 5]!;
  return { ...one, incomingInterface, from: sourceClassOf(table, one.source, false, incomingInterface) };
}

async function expectAgreement(nft: FakeNft, table: ForwardingTable, plan: Plan): Promise<void> {
  for (const one of flowsOf(plan).map((each, index) => withInterface(table, each, index))) {
    const { verdict } = explain(table, one, nftablesTraits);
    expect({ flow: one, verdict: tracePacket(nft, one) }).toEqual({
      flow: one,
      verdict: comparableVerdict(verdict, one),
    });
  }
}

test.each(plans)(
  '$family: a packet walked through the elements ends as explain says',
  async (plan) => {
    await fc.assert(
      fc.asyncProperty(tableArbitrary(plan), async (table) => {
        const driven = await Driven.open(undefined, plan.family);
        await driven.full(table);
        await expectAgreement(driven.nft, table, plan);
      }),
      { numRuns: 40 },
    );
  },
  60_000,
);

test.each(plans)(
  '$family: so it does after any history of changes, failures and restarts, as if freshly written',
  async (plan) => {
    const step = fc.record({
      table: tableArbitrary(plan),
      isRestart: fc.boolean(),
      failure: fc.integer({ min: 0, max: 9 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 5 }), async (history) => {
        const nft = new FakeNft();
        let driven = await Driven.open(nft, plan.family);
        for (const { table, isRestart, failure } of history) {
          if (isRestart) driven = await Driven.open(nft, plan.family);
          let calls = 0;
          nft.failures = { rate: 0.5, random: () => (calls++ === failure ? 0 : 1) };
          let outcome = isRestart ? await driven.full(table) : await driven.next(table);
          nft.failures = { rate: 0, random: () => 1 };
          if (outcome.status !== 'applied') outcome = await driven.next(table);
          expect(outcome).toMatchObject({ status: 'applied' });
        }
        const last = history.at(-1)!.table;
        const fresh = await Driven.open(undefined, plan.family);
        await fresh.full(last);
        expect(await driven.dump()).toBe(await fresh.dump());
        await expectAgreement(nft, last, plan);
        expect(await (await Driven.open(nft, plan.family)).full(last)).toEqual({ status: 'applied', writes: 0 });
      }),
      { numRuns: 25 },
    );
  },
  60_000,
);
