import { parseIp } from '@switchyard/core';
import { service, slice, socketTraits, tableOf } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import { place, placedDrop, podNetns, tcp } from '../testing/placed-drop.ts';
import { nodeView } from '../testing/shop.ts';
import type { NodeView } from './drop-subject.ts';
import { explainDrop } from './explain-drop.ts';

interface TestEndpoint {
  readonly ip: string;
  readonly node: string;
  readonly ready?: boolean;
  readonly serving?: boolean;
  readonly terminating?: boolean;
}

describe('a packet straight to an endpoint on which nothing listens', () => {
  /** With 10.244.1.5:8080 on n1, as its EndpointSlice has it, and others. */
  const tableWith = (
    endpoint: Partial<TestEndpoint>,
    {
      others = [],
      internal = 'Cluster',
    }: { readonly others?: readonly TestEndpoint[]; readonly internal?: 'Cluster' | 'Local' } = {},
  ) =>
    tableOf({
      services: [service('shop/cart', { internal })],
      slices: [slice('shop/cart', { endpoints: [{ ip: '10.244.1.5', node: 'n1', ...endpoint }, ...others] })],
    });
  const draining = { ready: false, serving: true, terminating: true };
  const starting = tableWith({ ready: false, serving: false });
  const drop = placedDrop({
    to: '10.244.1.5:8080',
    reason: 'NO_SOCKET',
    netns: podNetns,
    place: place('tcp', 'input'),
  });
  const causeWith = (table = starting, tableBefore?: typeof starting) =>
    explainDrop(drop, nodeView({ table, tableBefore }))?.cause;

  test('is lost if a Service leads there', () => {
    expect(causeWith(tableWith({}))).toBe('noListener');
  });

  test('is lost at a frontend that no rule took', () => {
    const table = tableOf({
      services: [service('shop/cart', { type: 'NodePort', ports: [{ port: 80, nodePort: 30_080 }] })],
    });
    const refused = { ...placedDrop({ to: '192.0.2.1:30080', reason: 'NO_SOCKET', place: place('tcp', 'input') }) };
    expect(explainDrop(refused, nodeView({ table }))).toMatchObject({
      cause: 'notYetApplied',
      why: "no rule of the node's proxy took it at 192.0.2.1:30080: the node has not applied shop/cart:/TCP",
    });
  });

  test('is lost because its pod ends, if a Service still leads there', () => {
    expect(causeWith(tableWith(draining))).toBe('applicationGone');
    const others = [{ ip: '10.244.2.5', node: 'n2' }];
    expect(causeWith(tableWith(draining, { others, internal: 'Local' }))).toBe('applicationGone');
  });

  test('is lost if a Service led there until a moment ago', () => {
    expect(causeWith(starting, tableWith({}))).toBe('noListener');
    expect(causeWith(tableOf({ services: [service('shop/cart')] }), tableWith({}))).toBe('applicationGone');
  });

  test('is lost if a connection began when a Service led there', () => {
    const data = { ...drop, tcpFlags: tcp.ack | tcp.data };
    const table = tableWith(
      { ready: false, serving: false, terminating: true },
      { others: [{ ip: '10.244.2.5', node: 'n2' }] },
    );
    expect(explainDrop(data, nodeView({ table }))?.cause).toBe('applicationGone');
  });

  test.each(['IP_INHDR', 'IP_OUTNOROUTES', 'IP_RPFILTER'])('is lost on its way to a deleted pod: %s', (reason) => {
    const lost = { ...drop, reason, place: place('kernel', 'forward') };
    const empty = tableOf({ services: [service('shop/cart')] });
    const former = explainDrop(lost, nodeView({ table: empty, tableBefore: tableWith({}) }));
    expect([former?.cause, former?.why]).toEqual([
      'staleRule',
      `10.244.1.5:8080 is no endpoint of shop/cart:/TCP any more; the kernel says ${reason}`,
    ]);
    const ending = explainDrop(lost, nodeView({ table: tableWith(draining), tableBefore: tableWith({}) }));
    expect(ending?.cause).toBe('applicationGone');
    expect(explainDrop(lost, nodeView({ table: tableWith({}) }))?.cause).not.toBe('applicationGone');
  });

  test('is none of a former endpoint if it comes from the node itself, such as the last readiness probe', () => {
    const probe = { ...drop, source: parseIp('10.244.1.1') };
    const view = nodeView({ table: tableOf({ services: [service('shop/cart')] }), tableBefore: tableWith({}) });
    expect(explainDrop(probe, view)).toBeUndefined();
    expect(explainDrop({ ...probe, hops: 63 }, view)?.cause).toBe('applicationGone'); // a request to a NodePort
  });

  test('is no loss of a Service if none leads there, such as a readiness probe of a new pod', () => {
    expect(causeWith()).toBeUndefined();
    expect(causeWith(starting, starting)).toBeUndefined();
  });

  test('is no loss of a Service whose ready pods are used instead, such as a readiness probe of a pod that ends', () => {
    const others = [
      { ip: '10.244.1.6', node: 'n1' },
      { ip: '10.244.2.5', node: 'n2' },
    ];
    expect(causeWith(tableWith(draining, { others }))).toBeUndefined();
    expect(causeWith(tableWith(draining, { others, internal: 'Local' }))).toBeUndefined();
  });
});

describe('a datagram from an endpoint for which the client has no socket', () => {
  const dns = service('shop/dns', { ports: [{ port: 53, protocol: 'UDP' }] });
  const tableWith = (endpoint: Partial<TestEndpoint>) =>
    tableOf({
      services: [dns],
      slices: [
        slice('shop/dns', {
          ports: [{ port: 5353, protocol: 'UDP' }],
          endpoints: [{ ip: '10.244.1.6', node: 'n1', ...endpoint }],
        }),
      ],
    });
  const drop = placedDrop({
    protocol: 'UDP',
    from: '10.244.1.6:5353',
    to: '10.244.9.9:40000',
    direction: 'answer',
    reason: 'NO_SOCKET',
    netns: podNetns,
    place: place('kernel', 'input'),
  });
  const lossIn = (view: Partial<NodeView>) => explainDrop(drop, nodeView({ table: tableWith({}), ...view }));

  test('is an answer that was not translated, or came too late', () => {
    expect(lossIn({})).toMatchObject({
      cause: 'answerNotTranslated',
      certainty: 'likely',
      why: '10.244.9.9 got an answer from 10.244.1.6:5353 itself, an endpoint of shop/dns:/UDP, and not from the address that it asked, or it had closed its socket',
    });
  });

  test('is no loss where sockets lead to the endpoint itself', () => {
    expect(lossIn({ traits: socketTraits })).toBeUndefined();
  });

  test('is no loss if the proxy has deleted its flow because the endpoint ends', () => {
    expect(lossIn({ table: tableWith({ ready: false, serving: true, terminating: true }) })).toBeUndefined();
    const empty = tableOf({ services: [dns] });
    expect(lossIn({ table: empty, tableBefore: tableWith({}) })).toBeUndefined();
  });
});
