import { parseIp } from '@switchyard/core';
import { lenientTraits, service, slice, socketTraits, tableOf } from '@switchyard/core/testing';
import { afterAll, describe, expect, test } from 'vitest';
import type { PlacedDrop } from '../kernel/drop-counter.ts';
import { type DropSpec, place, placedDrop, podNetns, tcp, tracked } from '../testing/placed-drop.ts';
import { nodeView, shop, shopOfSix } from '../testing/shop.ts';
import { type CauseCode, causes } from './causes.ts';
import type { NodeView } from './drop-subject.ts';
import { explainDrop, type Loss } from './explain-drop.ts';

const seen = new Set<CauseCode>();
function explained(drop: PlacedDrop, view: Partial<NodeView> = {}): Loss | undefined {
  const loss = explainDrop(drop, nodeView(view));
  if (loss !== undefined) seen.add(loss.cause);
  return loss;
}
const lossOf = (spec: DropSpec, view: Partial<NodeView> = {}) => explained(placedDrop(spec), view);
const causeAndCertainty = (loss: Loss | undefined) => [loss?.cause, loss?.certainty];

/** A flow to shop/cart by its endpoint, and by one that it does not have. */
const toCart = tracked('10.96.0.10:80', '10.244.1.5:8080');
const toDeleted = tracked('10.96.0.10:80', '10.244.1.99:8080');
const outside = '203.0.113.9:40000';
const client = '10.244.9.9:40000';
const cartPod = '10.244.1.5:8080';

describe('a request that the dataplane refuses', () => {
  test.each<readonly [string, DropSpec, CauseCode, RegExp]>([
    ['no endpoints', { to: '10.96.0.11:80' }, 'noEndpoints', /^no endpoint of shop\/empty:\/TCP is usable anywhere/],
    ['a NodePort', { from: outside, to: '192.0.2.1:30081' }, 'noEndpoints', /^no endpoint of shop\/empty:\/TCP/],
    ['no local endpoint', { to: '10.96.0.14:80' }, 'noLocalEndpoint', /none on this node; 10.244.2.7:8080 is on n2$/],
    ['a source outside the ranges', { from: outside, to: '198.51.100.8:80' }, 'sourceNotAllowed', /^203.0.113.9 is in/],
    [
      'an unknown port',
      { to: '10.96.0.10:81' },
      'unknownPort',
      /^10.96.0.10:81\/TCP: the cluster IP of shop\/cart has/,
    ],
    ['another protocol', { protocol: 'UDP' }, 'unknownPort', /^10.96.0.10:80\/UDP: the cluster IP of shop\/cart has/],
    [
      'no such Service',
      { to: '10.96.9.9:80' },
      'unallocatedAddress',
      /^10.96.9.9:80\/TCP: no Service has this address/,
    ],
  ])('%s', (_, spec, cause, why) => {
    expect(lossOf(spec)).toMatchObject({ cause, certainty: 'sure', why: expect.stringMatching(why) });
  });

  test('has every field of a loss', () => {
    expect(lossOf({ to: '10.96.0.11:80', count: 7 })).toEqual({
      cause: 'noEndpoints',
      why: 'no endpoint of shop/empty:/TCP is usable anywhere',
      advice: causes.noEndpoints,
      certainty: 'sure',
      service: 'shop/empty:/TCP',
      services: ['shop/empty:/TCP'],
      frontend: '10.96.0.11:80/TCP',
      client: '10.244.9.9',
      direction: 'request',
      where: { netns: 'node', hook: 'prerouting' },
      reason: 'NETFILTER_DROP',
      count: 7,
    });
  });

  test('of an address without a Service has no Service', () => {
    expect(lossOf({ to: '10.96.9.9:80' })).toMatchObject({ service: undefined, services: [] });
  });

  test('of IPv6', () => {
    const drop = { from: '[fd00:10:244::9]:40000', to: '[fd00:10:96::b]:80' };
    const expected = { cause: 'noEndpoints', frontend: '[fd00:10:96::b]:80/TCP', client: 'fd00:10:244::9' };
    expect(lossOf(drop, { table: shopOfSix })).toMatchObject(expected);
  });

  test('at the ingress of a program, where sockets are translated', () => {
    const spec = { to: '10.96.0.11:80', reason: 'TC_INGRESS', place: place('kernel') };
    expect(causeAndCertainty(lossOf(spec, { traits: socketTraits }))).toEqual(['noEndpoints', 'sure']);
  });

  test.each([
    ['a request that it forwards', { to: '10.96.0.10:80' }],
    ['a drop in a pod', { to: '10.96.0.11:80', netns: podNetns }],
    ['an answer', { from: '10.96.0.11:80', to: client, direction: 'answer' as const }],
  ])('is not at the ingress of a program: %s', (_, spec) => {
    const drop = { ...spec, reason: 'TC_INGRESS', place: place('kernel') };
    expect(causeAndCertainty(lossOf(drop, { traits: socketTraits }))).toEqual(['program', 'sure']);
  });

  test('is none where the dataplane lets unknown ports pass', () => {
    expect(lossOf({ to: '10.96.0.10:81' }, { traits: lenientTraits })?.cause).toBe('otherRule');
  });

  test('names at most three endpoints', () => {
    const endpoints = [1, 2, 3, 4, 5].map((last) => ({ ip: `10.244.1.${last}`, ready: false, serving: false }));
    const table = tableOf({ services: [service('shop/cart')], slices: [slice('shop/cart', { endpoints })] });
    expect(lossOf({}, { table })?.why).toBe(
      'no endpoint of shop/cart:/TCP is usable anywhere; 10.244.1.1:8080 is not ready; 10.244.1.2:8080 is not ready; 10.244.1.3:8080 is not ready; and 2 more',
    );
  });
});

describe('a request that the table before refused', () => {
  const emptyCart = tableOf({ services: [service('shop/cart')] });

  test.each([
    ['had no endpoints', emptyCart, 'noEndpoints', /usable anywhere \(until a moment ago\)$/],
    ['had no such Service', tableOf({}), 'notYetApplied', /^this node had not applied the Service yet$/],
  ] as const)('%s', (_, tableBefore, cause, why) => {
    const expected = { cause, certainty: 'likely', why: expect.stringMatching(why) };
    expect(lossOf({}, { tableBefore })).toMatchObject(expected);
  });

  test('is of the table now, if that refuses it too', () => {
    const loss = lossOf({ to: '10.96.0.11:80' }, { tableBefore: tableOf({}) });
    expect(causeAndCertainty(loss)).toEqual(['noEndpoints', 'likely']);
  });

  test('is of another rule, if that table forwards it too', () => {
    expect(lossOf({}, { tableBefore: shop })?.cause).toBe('otherRule');
  });
});

describe('a drop of netfilter that is no refusal', () => {
  const hook = place('hook', 'prerouting');

  test.each<readonly [string, DropSpec, Partial<NodeView>, CauseCode, Loss['certainty']]>([
    ['a rule', {}, {}, 'otherRule', 'sure'],
    ['an unknown function at the hook', { place: hook }, {}, 'otherRule', 'likely'],
    ['a rule of a pod', { to: '10.96.0.11:80', netns: podNetns }, {}, 'otherRule', 'sure'],
    ['a rule on the way to an endpoint', { to: cartPod }, {}, 'otherRule', 'sure'],
    [
      'an answer',
      { from: cartPod, to: client, direction: 'answer', tcpFlags: tcp.syn | tcp.ack },
      {},
      'otherRule',
      'sure',
    ],
    ['a full table', { place: hook }, { conntrack: { full: 1, clashes: 0 } }, 'conntrackFull', 'sure'],
    ['a rule, while the table is full', {}, { conntrack: { full: 1, clashes: 1 } }, 'otherRule', 'sure'],
    [
      'a flow in a full table',
      { place: hook, flow: toCart },
      { conntrack: { full: 1, clashes: 0 } },
      'otherRule',
      'likely',
    ],
    [
      'a clash',
      { place: place('hook', 'postrouting'), flow: { ...toCart, isAnswered: false } },
      { conntrack: { full: 0, clashes: 1 } },
      'conntrackClash',
      'sure',
    ],
    [
      'an old flow, while others clash',
      { place: hook, flow: toCart },
      { conntrack: { full: 0, clashes: 1 } },
      'otherRule',
      'likely',
    ],
  ])('%s', (_, spec, view, cause, certainty) => {
    expect(causeAndCertainty(lossOf(spec, view))).toEqual([cause, certainty]);
  });

  test('names the hook and the namespace', () => {
    const drop = { netns: podNetns, place: place('rule', 'input') };
    expect(lossOf(drop)).toMatchObject({
      why: 'a rule in the namespace of the pod dropped it at the hook input',
      where: { netns: 'pod', hook: 'input' },
    });
    expect(lossOf({ netns: 0 })?.where.netns).toBe('node');
  });

  const traits = { ...lenientTraits, invalidSegments: 'dropped' as const };
  const segment: DropSpec = { tcpFlags: tcp.ack | tcp.data, place: place('rule', 'forward') };
  test.each<readonly [string, DropSpec, Partial<NodeView>, CauseCode]>([
    ['a segment without a flow', {}, { traits }, 'invalidSegment'],
    ['an answer without a flow', { from: cartPod, to: client, direction: 'answer' }, { traits }, 'invalidSegment'],
    ['one of a flow', { flow: toCart }, { traits }, 'otherRule'],
    ['the first one', { tcpFlags: tcp.syn }, { traits }, 'otherRule'],
    ['one at another hook', { place: place('rule', 'prerouting') }, { traits }, 'otherRule'],
    ['one in a dataplane that lets them pass', {}, { traits: lenientTraits }, 'otherRule'],
    ['a datagram', { protocol: 'UDP', to: '10.96.0.15:53', tcpFlags: 0 }, { traits }, 'otherRule'],
  ])('%s is no part of a connection, or a rule dropped it', (_, spec, view, cause) => {
    expect(lossOf({ ...segment, ...spec }, view)?.cause).toBe(cause);
  });
});

describe('a flow to a deleted endpoint', () => {
  const drop: DropSpec = { to: '10.244.1.99:8080', reason: 'NEIGH_FAILED', place: place('neighbour') };
  const unconfirmed = { ...toDeleted, isConfirmed: false };
  const direct = tracked('10.96.0.10:80', '10.96.0.10:80');

  test.each<readonly [string, DropSpec, CauseCode]>([
    ['an old flow', { flow: toDeleted, tcpFlags: tcp.ack | tcp.data }, 'staleFlow'],
    ['an old flow of UDP', { flow: toDeleted, tcpFlags: 0 }, 'staleFlow'],
    ['a new flow', { flow: unconfirmed, tcpFlags: tcp.ack }, 'staleRule'],
    ['a first segment', { flow: toDeleted, tcpFlags: tcp.syn }, 'staleRule'],
    ['a known endpoint', { flow: toCart, to: cartPod }, 'neighbour'],
    ['another port of a known endpoint', { flow: tracked('10.96.0.10:80', '10.244.1.5:8081') }, 'staleRule'],
    ['a flow that was not translated', { flow: direct, to: '10.96.0.10:80' }, 'neighbour'],
    ['an answer', { flow: toDeleted, direction: 'answer', from: '10.96.0.10:80', to: client }, 'neighbour'],
    ['a refusal by netfilter', { flow: toDeleted, tcpFlags: tcp.ack, reason: 'NETFILTER_DROP' }, 'staleFlow'],
  ])('%s', (_, spec, cause) => {
    expect(lossOf({ ...drop, ...spec })).toMatchObject({ cause, certainty: 'sure', service: 'shop/cart:/TCP' });
  });

  test('is named with the Service and the reason of the kernel', () => {
    expect(lossOf({ ...drop, flow: toDeleted, tcpFlags: tcp.ack })?.why).toMatch(
      /10.244.1.99:8080 is no endpoint of shop\/cart:\/TCP any more; the kernel says NEIGH_FAILED$/,
    );
  });
});

describe('a reason of the kernel', () => {
  test.each<readonly [string, CauseCode, RegExp]>([
    ['IP_RPFILTER', 'reversePath', /^reverse path filter: .*\(10.244.9.9 to 10.96.0.10\)$/],
    ['IP_INNOROUTES', 'noRoute', /^no route \(10.244.9.9 to 10.96.0.10\)$/],
    ['IP_OUTNOROUTES', 'noRoute', /^no route/],
    ['NEIGH_FAILED', 'neighbour', /^the next hop does not answer/],
    ['NEIGH_CREATEFAIL', 'neighbourTableFull', /^the kernel has no room for another neighbour/],
    ['NEIGH_QUEUEFULL', 'neighbour', /^the next hop does not answer/],
    ['PKT_TOO_BIG', 'packetTooBig', /\(10.244.9.9 to 10.96.0.10, 1501 bytes\)$/],
    ['TCP_LISTEN_OVERFLOW', 'acceptQueueFull', /^the accept queue/],
    ['SOCKET_RCVBUFF', 'receiveBufferFull', /^the receive buffer/],
    ['CPU_BACKLOG', 'overload', /^the kernel dropped it: CPU_BACKLOG \(/],
    ['NOMEM', 'overload', /NOMEM/],
    ['IP_LOCAL_SOURCE', 'notAccepted', /IP_LOCAL_SOURCE/],
    ['IP_INVALID_DEST', 'notAccepted', /IP_INVALID_DEST/],
    ['TC_EGRESS', 'program', /TC_EGRESS/],
    ['XDP', 'program', /XDP/],
    ['TCP_CSUM', 'kernel', /TCP_CSUM/],
    ['reason 65537', 'kernel', /^the kernel dropped it: reason 65537 \(/],
  ])('%s means %s', (reason, cause, why) => {
    const loss = lossOf({ reason, place: place('kernel'), length: 1501 });
    expect(loss).toMatchObject({ cause, reason, certainty: 'sure', why: expect.stringMatching(why) });
  });

  test.each([
    ['route', 'noRoute'],
    ['neighbour', 'neighbour'],
    ['kernel', 'kernel'],
  ] as const)('that is none means what the place %s means: %s', (by, cause) => {
    expect(lossOf({ reason: 'NOT_SPECIFIED', place: place(by) })?.cause).toBe(cause);
  });

  test.each([
    'OTHERHOST',
    'SOCKET_CLOSE',
    'TCP_OLD_DATA',
    'TCP_ZEROWINDOW',
    'TCP_OFOMERGE',
    'QUEUE_PURGE',
    'DUP_FRAG',
    'UNIX_DISCONNECT',
  ])('%s loses nothing', (reason) => {
    expect(lossOf({ reason, tcpFlags: tcp.ack | tcp.data })).toBeUndefined();
  });
});

test.each<readonly [string, DropSpec, CauseCode | undefined, readonly string[]]>([
  ['a pod back to itself', { flow: { ...toCart, client: parseIp('10.244.1.5') } }, 'hairpinOff', []],
  ['a port for another reason', { flow: toCart }, 'kernel', []],
  ['a NodePort of another node', { from: outside, to: '192.0.2.9:30080' }, undefined, []],
  ['an address that the node no longer has', { from: outside, to: '192.0.2.9:30080' }, 'addressGone', ['192.0.2.9']],
])('a bridge that does not send to %s', (_, spec, cause, former) => {
  const drop = { to: cartPod, reason: 'NOT_SPECIFIED', place: place('bridge', 'prerouting'), ...spec };
  expect(lossOf(drop, { formerAddresses: new Set(former.map(parseIp)) })?.cause).toBe(cause);
});

describe('a socket', () => {
  const request: DropSpec = { flow: toCart, to: cartPod, netns: podNetns, place: place('tcp', 'input') };
  const answer: DropSpec = { from: cartPod, to: client, direction: 'answer', place: place('tcp', 'input') };

  test.each<readonly [string, DropSpec, CauseCode | undefined]>([
    ['that does not exist, for a first segment', { reason: 'NO_SOCKET' }, 'noListener'],
    [
      'that does not exist, for a datagram',
      { reason: 'NO_SOCKET', protocol: 'UDP', to: '10.244.1.6:5353', flow: undefined },
      'noListener',
    ],
    ['that was deleted, for data', { reason: 'NO_SOCKET', tcpFlags: tcp.ack | tcp.data }, 'applicationGone'],
    ['that was deleted, for a segment without data', { reason: 'NO_SOCKET', tcpFlags: tcp.ack }, undefined],
    ['that was closed, for data', { reason: 'TCP_ABORT_ON_DATA', tcpFlags: tcp.ack | tcp.data }, 'applicationGone'],
    ['that was closed, for a segment without data', { reason: 'TCP_ABORT_ON_DATA', tcpFlags: tcp.ack }, undefined],
    [
      'that was closed without a reason, for data',
      { reason: 'NOT_SPECIFIED', tcpFlags: tcp.ack | tcp.data },
      'applicationGone',
    ],
    [
      'that was closed without a reason, for an end',
      { reason: 'NOT_SPECIFIED', tcpFlags: tcp.fin | tcp.ack },
      undefined,
    ],
    ['that resets', { reason: 'NO_SOCKET', tcpFlags: tcp.reset | tcp.ack }, undefined],
    ['of a client without a socket', { ...answer, reason: 'NO_SOCKET', tcpFlags: tcp.ack | tcp.data }, undefined],
    [
      'of a client that was closed',
      { ...answer, reason: 'TCP_ABORT_ON_DATA', tcpFlags: tcp.ack | tcp.data },
      undefined,
    ],
    [
      'of a client that was closed without a reason',
      { ...answer, reason: 'NOT_SPECIFIED', tcpFlags: tcp.ack | tcp.data },
      undefined,
    ],
    [
      'of a client that the endpoint itself answers',
      { ...answer, flow: undefined, reason: 'NO_SOCKET', tcpFlags: tcp.syn | tcp.ack },
      'answerNotTranslated',
    ],
  ])('%s', (_, spec, cause) => {
    expect(lossOf({ ...request, ...spec })?.cause).toBe(cause);
  });

  test('of a client that has given up is none where sockets lead to the endpoint itself', () => {
    const drop = { ...request, ...answer, flow: undefined, reason: 'NO_SOCKET', tcpFlags: tcp.syn | tcp.ack } as const;
    expect(lossOf(drop, { traits: socketTraits })).toBeUndefined();
  });

  test('is named by the address of the packet, and the client by the flow', () => {
    const drop = { ...request, from: '10.244.1.1:50000', reason: 'NO_SOCKET' };
    expect(lossOf(drop)).toMatchObject({
      why: 'nothing listens on 10.244.1.5:8080',
      frontend: '10.96.0.10:80/TCP',
      client: '10.244.9.9',
      where: { netns: 'pod', hook: 'input' },
    });
  });
});

test('a drop at an endpoint that two Services share names both', () => {
  const endpoints = ['10.244.1.7'];
  const keys = ['shop/blue', 'shop/green'] as const;
  const table = tableOf({
    services: keys.map((key, index) => service(key, { clusterIps: [`10.96.0.2${index}`] })),
    slices: keys.map((key) => slice(key, { endpoints })),
  });
  expect(lossOf({ to: '10.244.1.7:8080', reason: 'NO_SOCKET' }, { table })).toMatchObject({
    service: 'shop/blue:/TCP',
    services: ['shop/blue:/TCP', 'shop/green:/TCP'],
    frontend: '10.244.1.7:8080/TCP',
  });
});

describe('a guessed direction', () => {
  test.each<readonly [string, DropSpec, Partial<Loss>]>([
    [
      'yields to an answer of an endpoint',
      { from: cartPod, to: '10.244.9.9:5000' },
      { direction: 'answer', frontend: '10.244.1.5:8080/TCP', client: parseIp('10.244.9.9') },
    ],
    [
      'yields to a request to an endpoint',
      { from: '10.244.9.9:5000', to: cartPod, direction: 'answer' },
      { direction: 'request', frontend: '10.244.1.5:8080/TCP', client: parseIp('10.244.9.9') },
    ],
    [
      'yields to an answer of a frontend',
      { from: '10.96.0.10:80', to: '10.244.9.9:70' },
      { direction: 'answer', frontend: '10.96.0.10:80/TCP' },
    ],
  ])('%s', (_, spec, expected) => {
    expect(lossOf({ ...spec, tcpFlags: tcp.ack, reason: 'IP_RPFILTER' })).toMatchObject(expected);
  });

  test('of a first segment stands', () => {
    expect(lossOf({ from: cartPod, to: '10.244.9.9:5000', tcpFlags: tcp.syn, reason: 'IP_RPFILTER' })).toBeUndefined();
  });

  test('that was tracked stands', () => {
    const drop = { from: cartPod, to: '10.244.9.9:5000', isDirectionGuessed: false, tcpFlags: tcp.ack };
    expect(lossOf({ ...drop, reason: 'IP_RPFILTER' })).toBeUndefined();
  });
});

test.each<readonly [string, DropSpec]>([
  ['to an address of no Service', { to: '203.0.113.99:80' }],
  ['to a NodePort at another node', { from: outside, to: '192.0.2.2:30080' }],
  ['to another port of an endpoint', { to: '10.244.1.5:8081' }],
  [
    'from an address without a Service',
    { from: '10.96.9.9:80', to: client, direction: 'answer', tcpFlags: tcp.syn | tcp.ack },
  ],
  [
    'from another port of a cluster IP',
    { from: '10.96.0.10:81', to: client, direction: 'answer', tcpFlags: tcp.syn | tcp.ack },
  ],
])('a drop of a packet %s is of no Service', (_, spec) => {
  expect(lossOf(spec)).toBeUndefined();
});

afterAll(() => {
  expect(Object.keys(causes).filter((code) => !seen.has(code as CauseCode))).toEqual([]);
});
