import { parseCidr, parseIp } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import type { LoadBalancerNode } from '../cluster/cluster-objects.ts';
import type { LoadBalancerSpec } from '../spec/load-balancer-spec.ts';
import { lbNode, type RawServiceSpec } from '../testing/builders.ts';
import { planDefaults } from '../testing/plan-input.ts';
import {
  annotated,
  labelled,
  local,
  node1,
  plan,
  portLines,
  problemsOf,
  type RawSpec,
  specOf,
  withoutNodePort,
} from '../testing/plan-one.ts';
import { excludedNodeText } from './problem.ts';

const transparent = annotated({ path: 'transparent' });

describe('published ports', () => {
  const sctp: RawSpec = { ports: [{ port: 9, protocol: 'SCTP', nodePort: 30009 }] };

  test.each<[title: string, parts: RawServiceSpec, problems: readonly unknown[]]>([
    ['of the proxy path are as specified', {}, []],
    ['do not go with the transparent path', { metadata: transparent }, [{ kind: 'notPublished', why: 'transparent' }]],
    ['are not there for SCTP', { spec: sctp }, [{ kind: 'notPublished', why: 'sctp' }]],
  ])('%s', (_, parts, problems) => {
    const published = plan(parts, { defaults: { isPublished: true } });
    expect(published.planned.status).toBe('run');
    expect(published.problems).toEqual(problems);
    expect(plan(parts).problems).toEqual([]);
  });
});

describe('nodes as targets', () => {
  test.each<[title: string, parts: RawServiceSpec, lines: readonly string[]]>([
    [
      'Cluster is checked on the port of the profile',
      {},
      [
        '172.18.255.1 80/TCP',
        'node1 172.18.0.11:30080 check 172.18.0.11:10256/healthz',
        'node2 172.18.0.12:30080 check 172.18.0.12:10256/healthz',
      ],
    ],
    [
      'Local is checked on the port of the Service',
      { spec: local },
      [
        '172.18.255.1 80/TCP',
        'node1 172.18.0.11:30080 check 172.18.0.11:32080/healthz',
        'node2 172.18.0.12:30080 check 172.18.0.12:32080/healthz',
      ],
    ],
    [
      'one number with several protocols; ports are in order',
      {
        spec: {
          ports: [
            { name: 's', port: 99, nodePort: 30099, protocol: 'SCTP' },
            { name: 'u', port: 53, nodePort: 30054, protocol: 'UDP' },
            { name: 't', port: 53, nodePort: 30053, protocol: 'TCP' },
          ],
        },
      },
      [
        '172.18.255.1 53/TCP',
        'node1 172.18.0.11:30053 check 172.18.0.11:10256/healthz',
        'node2 172.18.0.12:30053 check 172.18.0.12:10256/healthz',
        '172.18.255.1 53/UDP',
        'node1 172.18.0.11:30054 check 172.18.0.11:10256/healthz',
        'node2 172.18.0.12:30054 check 172.18.0.12:10256/healthz',
        '172.18.255.1 99/SCTP',
        'node1 172.18.0.11:30099 check 172.18.0.11:10256/healthz',
        'node2 172.18.0.12:30099 check 172.18.0.12:10256/healthz',
      ],
    ],
    [
      'both families, IPv4 first regardless of the Service',
      { spec: { ipFamilies: ['IPv6', 'IPv4'] } },
      [
        '172.18.255.1 fd00:172:18:ff::1 80/TCP',
        'node1 172.18.0.11:30080 check 172.18.0.11:10256/healthz',
        'node2 172.18.0.12:30080 check 172.18.0.12:10256/healthz',
        'node1 [fd00:172:18::11]:30080 check [fd00:172:18::11]:10256/healthz',
        'node2 [fd00:172:18::12]:30080 check [fd00:172:18::12]:10256/healthz',
      ],
    ],
    [
      'transparent: packets arrive at the Service port, no NodePort is needed',
      { spec: { ...withoutNodePort, ...local }, metadata: transparent },
      [
        '172.18.255.1 80/TCP',
        'node1 172.18.0.11:80 check 172.18.0.11:32080/healthz',
        'node2 172.18.0.12:80 check 172.18.0.12:32080/healthz',
      ],
    ],
  ])('%s', (_, parts, lines) => {
    const one = plan(parts);
    expect(portLines(one)).toEqual(lines);
    expect(problemsOf(one)).toEqual([]);
    expect(specOf(one).routes).toEqual([]);
  });
});

describe('what else a spec says', () => {
  test.each<[title: string, parts: RawServiceSpec, expected: Partial<LoadBalancerSpec>]>([
    [
      'nothing special',
      {},
      {
        id: { cluster: 'kind', service: 'default/web' as LoadBalancerSpec['id']['service'] },
        addresses: [parseIp('172.18.255.1')],
        path: 'proxy',
        sourceRanges: [],
        sessionAffinity: { kind: 'none' },
        proxyProtocol: 'none',
        isWeighted: false,
        profile: planDefaults.healthProfileOf(undefined, {}),
      },
    ],
    ['weights count with Local', { spec: local }, { isWeighted: true }],
    [
      'but not for endpoints, which are what weights count',
      { spec: { ...local, ...withoutNodePort } },
      { isWeighted: false },
    ],
    [
      'nodes are weighed on the transparent path too',
      { spec: { ...local, ...withoutNodePort }, metadata: transparent },
      { isWeighted: true },
    ],
    [
      'source ranges of both families, sorted, each once',
      { spec: { loadBalancerSourceRanges: ['fd00::/8', '10.1.0.0/16', '10.1.2.3/16', '10.0.0.0/16'] } },
      { sourceRanges: ['10.0.0.0/16', '10.1.0.0/16', 'fd00::/8'].map(parseCidr) },
    ],
    [
      'affinity',
      { spec: { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } } } },
      { sessionAffinity: { kind: 'clientIP', timeout: 60_000 as never } },
    ],
    ['the PROXY protocol', { metadata: annotated({ 'proxy-protocol': 'v2' }) }, { proxyProtocol: 'v2' }],
    ['the path', { metadata: transparent }, { path: 'transparent' }],
    [
      'a profile of its own',
      { metadata: annotated({ 'health-check-interval': '1s' }) },
      { profile: planDefaults.healthProfileOf(undefined, { interval: 1000 as never }) },
    ],
  ])('%s', (_, parts, expected) => {
    expect(specOf(plan(parts))).toMatchObject(expected);
  });
});

describe('nodes that are left out', () => {
  const tainted = lbNode('leaving', ['172.18.0.3'], {
    spec: { taints: [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }] },
  });
  const deleted = lbNode('deleted', ['172.18.0.4'], {
    metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' as unknown as Date },
  });
  const ipv6Only = lbNode('six', ['fd00:172:18::6']);

  test('are named with the reason, and are no targets', () => {
    const one = plan({}, { nodes: [node1, labelled, tainted, deleted, ipv6Only] });
    expect(portLines(one)).toEqual(['172.18.255.1 80/TCP', 'node1 172.18.0.11:30080 check 172.18.0.11:10256/healthz']);
    expect(one.excludedNodes.map(excludedNodeText)).toEqual([
      'control-plane (label node.kubernetes.io/exclude-from-external-load-balancers)',
      'deleted (being deleted)',
      'leaving (taint ToBeDeletedByClusterAutoscaler)',
      'six (no IPv4 address)',
    ]);
  });
  test('are named up to a number', () => {
    const many = Array.from({ length: 100 }, (_, index) => lbNode(`n${index + 100}`, ['fd00::1']));
    const [problem] = problemsOf(plan({}, { nodes: many }));
    expect(problem).toMatch(/: left out are n100 \(no IPv4 address\), n101 .*n107 \(no IPv4 address\) and 92 others$/);
  });
  test('are named once, though both families leave them out', () => {
    const one = plan({ spec: { ipFamilies: ['IPv4', 'IPv6'] } }, { nodes: [node1, labelled] });
    expect(one.excludedNodes).toEqual([{ node: 'control-plane', reason: 'label' }]);
  });
  test.each<[title: string, spec: RawSpec, nodes: readonly LoadBalancerNode[], problems: readonly string[]]>([
    ['no node at all', {}, [], ['there is no node to send IPv4 connections to']],
    [
      'none but a labelled one, as in a cluster of one node',
      {},
      [labelled],
      [
        'there is no node to send IPv4 connections to: left out are control-plane (label node.kubernetes.io/exclude-from-external-load-balancers); kubeadm puts that label on control planes, and "kubectl label node control-plane node.kubernetes.io/exclude-from-external-load-balancers-" takes it off',
      ],
    ],
    [
      'none of one family',
      { ipFamilies: ['IPv4', 'IPv6'] },
      [lbNode('four', ['172.18.0.9'])],
      ['there is no node to send IPv6 connections to: left out are four (no IPv6 address)'],
    ],
  ])('%s: the load balancer is there nevertheless', (_, spec, nodes, problems) => {
    const one = plan({ spec }, { nodes });
    expect(specOf(one).addresses).toContain('172.18.255.1');
    expect(problemsOf(one)).toEqual(problems);
  });
});

describe('a wrong annotation', () => {
  const wrong = annotated({ path: 'x', 'proxy-protocol': 'v2' });
  test('leaves alone what runs; nothing new is made', () => {
    const one = plan({ metadata: wrong });
    expect(one.planned).toEqual({ status: 'keep' });
    expect(one.problems.map(({ kind }) => kind)).toEqual(['annotation']);
  });
  test('changes nothing of what was right before, while nodes are followed', () => {
    const before = plan({ metadata: transparent }).planned;
    if (before.status !== 'run') throw new Error('it does not run');
    const one = plan({ metadata: wrong }, { lastSettings: before.settings, nodes: [node1] });
    expect(specOf(one)).toMatchObject({ path: 'transparent', proxyProtocol: 'none' });
    expect(portLines(one)).toHaveLength(2);
    expect(one.problems.map(({ kind }) => kind)).toEqual(['annotation']);
  });
});
