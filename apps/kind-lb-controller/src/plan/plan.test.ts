import { describe, expect, test } from 'vitest';
import { planServices, problemText } from './plan.ts';
import { lbService, type RawServiceSpec } from '../testing/builders.ts';
import { sharedAddresses } from '../testing/example-cluster.ts';

const plansOf = (...services: readonly ReturnType<typeof lbService>[]): readonly (readonly string[])[] =>
  planServices(services, sharedAddresses).map(({ problems }) => problems.map(problemText));

describe('problems', () => {
  test.each<[title: string, spec: NonNullable<RawServiceSpec['spec']>, problems: readonly string[]]>([
    ['none', {}, []],
    [
      'UDP and SCTP ports',
      {
        ports: [
          { port: 53, nodePort: 30053, protocol: 'UDP' },
          { port: 80, nodePort: 30080 },
          { port: 99, nodePort: 30099, protocol: 'SCTP' },
        ],
      },
      [
        'port 53/UDP is not load-balanced: HAProxy forwards TCP only',
        'port 99/SCTP is not load-balanced: HAProxy forwards TCP only',
      ],
    ],
    [
      'no NodePort',
      { ports: [{ port: 80 }] },
      ['port 80/TCP is not load-balanced: it has no nodePort; set allocateLoadBalancerNodePorts to true'],
    ],
    [
      'Local without a health-check port',
      { externalTrafficPolicy: 'Local' },
      ['externalTrafficPolicy is Local and there is no healthCheckNodePort, so no node can be checked'],
    ],
  ])('%s', (_, spec, problems) => {
    expect(plansOf(lbService('default/web', { spec }))).toEqual([problems]);
  });

  test('a port that an older Service has on the shared address', () => {
    const young = lbService('a/young', { createdAt: '2026-05-01T00:00:00Z' });
    expect(plansOf(young, lbService('b/old'))).toEqual([
      ['port 80/TCP is not load-balanced on 172.18.0.50: Service b/old has it; use another port'],
      [],
    ]);
  });
  test('a family without an address', () => {
    const source = { kind: 'shared', addresses: [] } as const;
    const [plan] = planServices([lbService('default/web')], source);
    expect(plan?.problems.map(problemText)).toEqual(['there is no IPv4 address to give']);
    expect(plan?.served).toBeUndefined();
  });
});

test.each<[title: string, parts: RawServiceSpec]>([
  ['another type', { spec: { type: 'NodePort' } }],
  ['a load-balancer class', { spec: { loadBalancerClass: 'example.com/x' } }],
  ['being deleted', { isBeingDeleted: true }],
])('a Service with %s is not served', (_, parts) => {
  const [plan] = planServices([lbService('default/web', parts)], sharedAddresses);
  expect(plan).toMatchObject({ served: undefined, problems: [], grant: [] });
});
