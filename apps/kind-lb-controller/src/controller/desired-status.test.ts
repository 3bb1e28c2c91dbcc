import { describe, expect, test } from 'vitest';
import { desiredStatus, hasLeftovers, statusPatch } from './desired-status.ts';
import { planServices } from '../plan/plan.ts';
import { lbService, type RawServiceSpec } from '../testing/builders.ts';
import { sharedAddresses } from '../testing/example-cluster.ts';

const now = '2026-11-21T10:00:00Z';
const ingress = [{ ip: '172.18.0.50', ipMode: 'Proxy', ports: [{ port: 80, protocol: 'TCP' }] }];
const patchOf = (parts: RawServiceSpec): unknown => {
  const service = lbService('default/web', parts);
  const [plan] = planServices([service], sharedAddresses);
  return statusPatch(service, desiredStatus(plan!), now);
};
const udp = { ports: [{ port: 53, nodePort: 30053, protocol: 'UDP' }] };
const condition = {
  type: 'LoadBalancerPortsError',
  status: 'True',
  reason: 'UnsupportedProtocol',
  message: 'port 53/UDP is not load-balanced: HAProxy forwards TCP only',
  lastTransitionTime: '2026-01-01T00:00:00Z' as unknown as Date,
};
const foreign = {
  type: 'Other',
  status: 'False',
  reason: 'X',
  message: '',
  lastTransitionTime: now as unknown as Date,
};

describe('the patch', () => {
  test('announces the address with ipMode Proxy and its ports, based on the version that was read', () => {
    expect(patchOf({})).toEqual({
      metadata: { resourceVersion: '1' },
      status: { loadBalancer: { ingress } },
    });
  });
  test('is none when the status says so already', () => {
    expect(patchOf({ status: { loadBalancer: { ingress } } })).toBeUndefined();
  });
  test('tells of a UDP port in a condition, and announces nothing', () => {
    expect(patchOf({ spec: udp })).toEqual({
      metadata: { resourceVersion: '1' },
      status: { conditions: [{ ...condition, lastTransitionTime: now }] },
    });
  });
  test('leaves a condition alone that says the same', () => {
    expect(patchOf({ spec: udp, status: { conditions: [condition] } })).toBeUndefined();
  });
  test('keeps the transition time when only the message changes, and the conditions of others', () => {
    const before = { ...condition, message: 'another' };
    expect(patchOf({ spec: udp, status: { conditions: [before, foreign] } })).toMatchObject({
      status: { conditions: [foreign, condition] },
    });
  });
  test('removes the condition once all is well', () => {
    expect(patchOf({ status: { loadBalancer: { ingress }, conditions: [condition] } })).toMatchObject({
      status: { conditions: null },
    });
  });
  test('clears the ingress with null, for an empty object would change nothing', () => {
    expect(patchOf({ spec: { type: 'ClusterIP' }, status: { loadBalancer: { ingress } } })).toMatchObject({
      status: { loadBalancer: { ingress: null } },
    });
  });
  test('marks a port that is not served among others that are', () => {
    const ports = [{ port: 80, nodePort: 30080, protocol: 'TCP' }, ...udp.ports];
    expect(patchOf({ spec: { ports } })).toMatchObject({
      status: {
        loadBalancer: {
          ingress: [
            {
              ports: [
                { port: 80, protocol: 'TCP' },
                { port: 53, protocol: 'UDP', error: 'switchyard.dev/UnsupportedProtocol' },
              ],
            },
          ],
        },
      },
    });
  });
});

describe('leftovers of ours', () => {
  test.each<[title: string, parts: RawServiceSpec, expected: boolean]>([
    ['a Service that is ours has none', { status: { loadBalancer: { ingress } } }, false],
    ['type ClusterIP with our address', { spec: { type: 'ClusterIP' }, status: { loadBalancer: { ingress } } }, true],
    ['type ClusterIP with our condition', { spec: { type: 'ClusterIP' }, status: { conditions: [condition] } }, true],
    ['being deleted with our address', { isBeingDeleted: true, status: { loadBalancer: { ingress } } }, true],
    [
      'an address of somebody else',
      { spec: { type: 'ClusterIP' }, status: { loadBalancer: { ingress: [{ ip: '203.0.113.1', ipMode: 'Proxy' }] } } },
      false,
    ],
    [
      'our address, but captured by the proxy: not written by us',
      { spec: { type: 'ClusterIP' }, status: { loadBalancer: { ingress: [{ ip: '172.18.0.50', ipMode: 'VIP' }] } } },
      false,
    ],
    [
      'a Service of another class is never touched',
      { spec: { loadBalancerClass: 'example.com/x' }, status: { loadBalancer: { ingress } } },
      false,
    ],
  ])('%s', (_, parts, expected) => {
    expect(hasLeftovers(lbService('default/web', parts), sharedAddresses)).toBe(expected);
  });
});
