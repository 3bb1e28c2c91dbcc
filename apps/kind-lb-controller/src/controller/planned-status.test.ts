import { parseIp, parsePort } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { type Problem, problemText } from '../plan/problem.ts';
import type { ServiceSettings } from '../plan/settings.ts';
import { lbService } from '../testing/builders.ts';
import { exampleSpec, nodeTargets } from '../testing/example-specs.ts';
import { failedStatus, refusalReason, runningStatus } from './planned-status.ts';
import type { DesiredStatus } from './service-status.ts';

const address = parseIp('172.18.0.50');
const service = lbService('default/web', {
  spec: {
    externalTrafficPolicy: 'Local',
    healthCheckNodePort: 32080,
    ports: [
      { name: 'a', port: 80, nodePort: 30080 },
      { name: 'b', port: 81, nodePort: 30081 },
    ],
  },
});
const port = { port: parsePort(80), protocol: 'TCP', addresses: [address], targets: [] } as const;
const spec = exampleSpec('web', { addresses: [address], ports: [port] });
const settings: ServiceSettings = {
  profile: spec.profile,
  path: 'proxy',
  proxyProtocol: 'none',
  isFastDrain: false,
};
const place = { where: 'container switchyard-lb-1f3a9', published: [] };
const target = nodeTargets(30080)[0]!;
const statusWith = (problems: readonly Problem[], published: readonly string[] = []): DesiredStatus =>
  runningStatus({ service, problems, excludedNodes: [] }, { spec, settings }, { ...place, published });
const conflict: Problem = {
  kind: 'portConflict',
  address,
  port: parsePort(81),
  protocol: 'TCP',
  heldBy: { cluster: 'kind', service: 'default/older' as never },
};

describe('a load balancer that runs', () => {
  test('shows the place, the health checks, and published ports', () => {
    const { conditions, ingress } = statusWith([], ['127.0.0.1:32768 -> 80/TCP']);
    expect(ingress).toEqual([
      {
        ip: '172.18.0.50',
        ipMode: 'Proxy',
        ports: [
          { port: 80, protocol: 'TCP' },
          { port: 81, protocol: 'TCP' },
        ],
      },
    ]);
    expect(conditions).toMatchObject([{ type: 'lb.switchyard.dev/Ready', status: 'True', reason: 'Serving' }]);
    expect(conditions[0]?.message).toMatch(
      /HTTP GET :32080\/healthz every .*; container switchyard-lb-1f3a9; published 127\.0\.0\.1:32768 -> 80\/TCP$/,
    );
  });
  test('shows that it does not wait for health checks', () => {
    const run = { spec, settings: { ...settings, isFastDrain: true } };
    const { conditions } = runningStatus({ service, problems: [], excludedNodes: [] }, run, place);
    expect(conditions[0]?.message).toContain(
      '; fast drain: nodes are out as soon as their endpoints terminate; container ',
    );
  });
  test('of the transparent path is a VIP', () => {
    const plan = { service, problems: [], excludedNodes: [] };
    expect(runningStatus(plan, { spec: { ...spec, path: 'transparent' }, settings }, place).ingress).toMatchObject([
      { ipMode: 'VIP' },
    ]);
  });
  test('whose ports cannot be published is ready, and says so', () => {
    const { conditions, ingress } = statusWith([{ kind: 'notPublished', why: 'transparent' }]);
    expect(conditions).toMatchObject([{ status: 'True', reason: 'Serving' }]);
    expect(conditions[0]?.message).toMatch(/; no port is published on this machine: the path is transparent, /);
    expect(ingress?.[0]?.ports?.filter(({ error }) => error !== undefined)).toEqual([]);
    expect(refusalReason([{ kind: 'notPublished', why: 'sctp' }])).toBe('NotPublished');
  });
  test('without one of its ports says so at the port and in a condition, and is ready', () => {
    const { conditions, ingress } = statusWith([conflict]);
    expect(ingress?.[0]?.ports?.[1]).toEqual({ port: 81, protocol: 'TCP', error: 'switchyard.dev/PortConflict' });
    expect(conditions).toMatchObject([
      { type: 'LoadBalancerPortsError', status: 'True', reason: 'PortConflict' },
      { type: 'lb.switchyard.dev/Ready', status: 'True' },
    ]);
  });
  test.each<[string, Problem, string]>([
    ['without a node', { kind: 'noNodes', ipFamily: 'IPv4', excluded: [] }, 'NoNodes'],
    [
      'without an endpoint where it needs one',
      { kind: 'noEndpoints', port: parsePort(80), protocol: 'TCP', ipFamily: 'IPv4' },
      'NoEndpoints',
    ],
    [
      'with the settings of before',
      { kind: 'annotation', name: 'lb.switchyard.dev/path', value: 'x', fault: 'it must be proxy or transparent' },
      'InvalidConfiguration',
    ],
  ])('%s is not ready, and no port is blamed', (_, problem, reason) => {
    const { conditions } = statusWith([problem]);
    expect(conditions).toMatchObject([{ type: 'lb.switchyard.dev/Ready', status: 'False', reason }]);
    expect(conditions[0]?.message).toMatch(new RegExp(`^${problemText(problem, 'kind')}; cloud-provider-kind: `));
  });
});

test('with one family that has nodes it is ready, and says what the other one lacks', () => {
  const problems = [{ kind: 'noNodes', ipFamily: 'IPv6', excluded: [] }] as const;
  const served = { ...spec, ports: [{ ...port, targets: [target] }] };
  const { conditions } = runningStatus({ service, problems, excludedNodes: [] }, { spec: served, settings }, place);
  expect(conditions).toMatchObject([{ status: 'True', message: expect.stringContaining('no node to send IPv6') }]);
});

test('a failure keeps the addresses of what ran before; nothing keeps none', () => {
  const failure = { reason: 'ImageNotFound', message: 'no image' };
  const at = { cluster: 'kind' };
  expect(failedStatus({ problems: [] }, { ...failure, ...at, isGone: false })).toEqual({
    ingress: undefined,
    conditions: [{ type: 'lb.switchyard.dev/Ready', status: 'False', ...failure }],
  });
  expect(failedStatus({ problems: [] }, { ...failure, ...at, isGone: true }).ingress).toEqual([]);
});

test('a port conflict has the same text whether other ports are served or none is', () => {
  const failure = { reason: 'PortConflict', message: 'x', cluster: 'kind', isGone: true };
  const ofFailure = failedStatus({ problems: [conflict] }, failure).conditions[0];
  expect(ofFailure).toEqual(statusWith([conflict]).conditions[0]);
  expect(ofFailure?.message).toContain('Service default/older has it');
});

test.each<[string, readonly Problem[], string]>([
  ['the Service', [{ kind: 'noHealthCheckNodePort' }, conflict], 'InvalidConfiguration'],
  ['the addresses', [{ kind: 'noAddress', ipFamily: 'IPv4', reason: 'exhausted' }], 'NoAddress'],
  ['the ports', [conflict], 'PortConflict'],
])('a refusal is blamed on %s', (_, problems, reason) => {
  expect(refusalReason(problems)).toBe(reason);
});
