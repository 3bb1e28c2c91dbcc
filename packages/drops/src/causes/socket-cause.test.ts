import { service, slice, tableOf } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import { place, placedDrop, podNetns } from '../testing/placed-drop.ts';
import { nodeView } from '../testing/shop.ts';
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
    expect(causeWith(tableWith(draining))).toBe('noListener');
    const others = [{ ip: '10.244.2.5', node: 'n2' }];
    expect(causeWith(tableWith(draining, { others, internal: 'Local' }))).toBe('noListener');
  });

  test('is lost if a Service led there until a moment ago', () => {
    expect(causeWith(starting, tableWith({}))).toBe('noListener');
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
