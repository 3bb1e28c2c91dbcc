import { type ClusterEvent, ClusterState, nodeName, noopLogger, parseIp } from '@switchyard/core';
import { node, replaceAll } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import { OwnNode } from './own-node.ts';

const name = nodeName('n1');

function setUp(bindAddress?: string) {
  const state = new ClusterState({ nodeName: name });
  const lines: string[] = [];
  const note = (message: string): void => void lines.push(message);
  const own = new OwnNode({
    config: { nodeName: name, bindAddress: bindAddress === undefined ? undefined : parseIp(bindAddress) },
    state,
    logger: { ...noopLogger, info: note, warn: note },
  });
  const put = (spec: Parameters<typeof node>[1]): void => {
    const event: ClusterEvent = { kind: 'upsert', resource: 'Node', item: node('n1', spec) };
    state.apply([event]);
  };
  return { own, put, lines, remove: () => state.apply([{ kind: 'delete', resource: 'Node', name }]), state };
}

describe('addresses', () => {
  const both = ['192.0.2.1', 'fd00::1', '203.0.113.1'];
  const six = ['fd00::1', '192.0.2.1'];
  test.each([
    ['a Node without addresses', undefined, [], undefined, undefined, undefined],
    ['the first of each family', undefined, both, 'IPv4', '192.0.2.1', 'fd00::1'],
    ['IPv6 first makes it primary', undefined, six, 'IPv6', '192.0.2.1', 'fd00::1'],
    ['--bind-address takes the place of its family’s', '198.51.100.9', both, 'IPv4', '198.51.100.9', 'fd00::1'],
    ['and makes its family the primary one', 'fd00::9', both, 'IPv6', '192.0.2.1', 'fd00::9'],
    ['--bind-address is enough', '198.51.100.9', [], 'IPv4', '198.51.100.9', undefined],
  ])('%s', (_, bindAddress, addresses, primary, four, sixth) => {
    const { own, put } = setUp(bindAddress);
    put({ addresses });
    expect(own.primaryFamily).toBe(primary);
    expect([own.addressOf('IPv4'), own.addressOf('IPv6')]).toEqual([four, sixth]);
    expect(own.hasAddress).toBe(primary !== undefined);
  });
});

describe('pod ranges', () => {
  test('the first of each family', () => {
    const { own, put } = setUp();
    expect(own.podCidrs).toEqual([]);
    put({ podCidrs: ['fd00:10:244:1::/64', '10.244.1.0/24', '10.245.1.0/24'] });
    expect([own.podCidrOf('IPv4'), own.podCidrOf('IPv6')]).toEqual(['10.244.1.0/24', 'fd00:10:244:1::/64']);
  });
});

describe('a Node that changes', () => {
  test('is followed, with a line for each change', () => {
    const { own, put, lines } = setUp();
    put({ addresses: ['192.0.2.1'], podCidrs: ['10.244.1.0/24'] });
    expect(own.addressOf('IPv4')).toBe('192.0.2.1');
    put({ addresses: ['192.0.2.2'], podCidrs: ['10.244.7.0/24'] });
    expect([own.addressOf('IPv4'), own.podCidrOf('IPv4')]).toEqual(['192.0.2.2', '10.244.7.0/24']);
    put({ addresses: ['192.0.2.2'], podCidrs: ['10.244.7.0/24'], zone: 'b' });
    expect(own.addressOf('IPv4')).toBe('192.0.2.2');
    const change = ['addresses of the Node', 'pod ranges of the Node'];
    expect(lines).toEqual([...change, ...change]);
  });

  test('that is deleted, and comes back without addresses and pod ranges, keeps those it had', () => {
    const { own, put, remove, lines } = setUp();
    put({ addresses: ['192.0.2.1', 'fd00::1'], podCidrs: ['10.244.1.0/24'] });
    expect(own.hasAddress).toBe(true);
    remove();
    expect([own.addressOf('IPv4'), own.podCidrOf('IPv4')]).toEqual(['192.0.2.1', '10.244.1.0/24']);
    put({});
    expect([own.addressOf('IPv6'), own.podCidrOf('IPv4')]).toEqual(['fd00::1', '10.244.1.0/24']);
    put({ addresses: ['192.0.2.9'] });
    expect([own.addressOf('IPv4'), own.addressOf('IPv6')]).toEqual(['192.0.2.9', undefined]);
    expect(lines).toContain('the Node was deleted; its last addresses and pod ranges stay in use');
  });

  test('ignores other Nodes', () => {
    const { own, state } = setUp();
    state.apply(replaceAll({ nodes: [node('n2', { addresses: ['192.0.2.2'], podCidrs: ['10.244.2.0/24'] })] }));
    expect([own.hasAddress, own.podCidrs]).toEqual([false, []]);
  });
});
