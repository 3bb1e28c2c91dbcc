import { ClusterState, type IpFamily, nodeName, noopLogger, parseCidr, parseIp } from '@switchyard/core';
import { node } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import type { RunConfig } from '../config/run-config.ts';
import { parseConfig } from '../config.ts';
import { OwnNode } from './own-node.ts';
import { startConditionsOf } from './start-conditions.ts';

const both: readonly IpFamily[] = ['IPv4', 'IPv6'];
const everywhere = { nodePortAddresses: { primary: false, cidrs: [parseCidr('0.0.0.0/0')], loopback: [] } } as const;
const byNode = { detectLocal: { kind: 'nodeCIDR' } } as const;
const manifests = { source: { kind: 'manifests', folder: '/unused' } } as const;

function setUp(more: Partial<RunConfig>, supported: readonly IpFamily[] = both) {
  const parsed = parseConfig(['--hostname-override=n1', '--kubeconfig=/unused', '--proxy-mode=nftables'], {});
  if (parsed.kind !== 'run') throw new Error('not a run');
  const config = { ...parsed, ...more };
  const state = new ClusterState({ nodeName: nodeName('n1') });
  const own = new OwnNode({ config, state, logger: noopLogger });
  const put = (spec: Parameters<typeof node>[1]): void =>
    void state.apply([{ kind: 'upsert', resource: 'Node', item: node('n1', spec) }]);
  return { conditions: startConditionsOf(config, own, supported), put };
}

describe('what is waited for', () => {
  test.each<[string, Partial<RunConfig>, readonly (readonly [timeout: number, mustBe: boolean])[]]>([
    ['NodePorts answer on the primary address', {}, [[30_000, false]]],
    ['NodePorts answer everywhere', everywhere, []],
    ['pods are recognized by the Node’s ranges', { ...everywhere, ...byNode }, [[300_000, true]]],
    [
      'both',
      byNode,
      [
        [300_000, true],
        [30_000, false],
      ],
    ],
    [
      'both, and there are only manifests',
      { ...byNode, ...manifests },
      [
        [0, true],
        [0, false],
      ],
    ],
  ])('%s', (_, more, expected) => {
    const { conditions } = setUp(more);
    expect(conditions.map(({ timeout, failure }) => [timeout, failure !== undefined])).toEqual(expected);
  });

  test('addresses are there when the Node has some, or the operator gave one', () => {
    const { conditions, put } = setUp({});
    expect(conditions[0]?.isMet()).toBe(false);
    put({ addresses: ['192.0.2.1'] });
    expect(conditions[0]?.isMet()).toBe(true);
    expect(setUp({ bindAddress: parseIp('192.0.2.9') }).conditions[0]?.isMet()).toBe(true);
  });

  test('pod ranges are there when the Node has some', () => {
    const { conditions, put } = setUp(byNode);
    put({ addresses: ['192.0.2.1'] });
    expect(conditions.map((one) => one.isMet())).toEqual([false, true]);
    put({ addresses: ['192.0.2.1'], podCidrs: ['10.244.1.0/24'] });
    expect(conditions[0]?.isMet()).toBe(true);
  });
});

describe('what ends the agent', () => {
  test('no pod ranges in time', () => {
    expect(setUp(byNode).conditions[0]?.failure?.()).toMatchObject({
      name: 'ConfigError',
      message: expect.stringContaining('Node n1 has no spec.podCIDRs after 300 s; let the controller manager allocate'),
    });
    expect(setUp({ ...byNode, ...manifests }).conditions[0]?.failure?.().message).toContain('in the manifests; let');
  });

  test('pod ranges of the other family only', () => {
    const { conditions, put } = setUp(byNode);
    put({ addresses: ['192.0.2.1'], podCidrs: ['fd00:10:244:1::/64'] });
    expect(() => conditions[0]?.isMet()).toThrow('its spec.podCIDRs has none of that family: fd00:10:244:1::/64');
  });

  test.each([
    ['NodePorts answer on the primary address', {}],
    ['pods are recognized by the Node’s ranges', { ...everywhere, ...byNode }],
  ])('fact 77: a Node whose primary address is IPv6 on a machine without IPv6, when %s', (_, more) => {
    const { conditions, put } = setUp(more, ['IPv4']);
    put({ addresses: ['fd00::1', '192.0.2.1'] });
    expect(() => conditions[0]?.isMet()).toThrow(
      "our Node's primary address is IPv6, and this machine's kernel has no IPv6 (missing, or disabled for all interfaces)",
    );
  });

  test('fact 77: an IPv6 --bind-address on a machine without IPv6, at once; an IPv4 one helps', () => {
    expect(() => setUp({ bindAddress: parseIp('fd00::9') }, ['IPv4'])).toThrow(
      'this machine’s kernel'.replace('’', "'"),
    );
    const { conditions, put } = setUp({ bindAddress: parseIp('192.0.2.9') }, ['IPv4']);
    put({ addresses: ['fd00::1'] });
    expect(conditions[0]?.isMet()).toBe(true);
  });

  test('--cluster-cidr of a family that this machine does not have', () => {
    const six = { detectLocal: { kind: 'clusterCIDR', cidrs: { IPv6: parseCidr('fd00:10:244::/48') } } } as const;
    expect(() => setUp(six, ['IPv4'])).toThrow('--cluster-cidr has only IPv6 ranges, and this machine has only IPv4');
    expect(setUp(six, both).conditions).toHaveLength(1);
  });
});
