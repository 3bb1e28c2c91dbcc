import { service, slice, tableOf } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import { place, placedDrop, podNetns } from '../testing/placed-drop.ts';
import { nodeView } from '../testing/shop.ts';
import { explainDrop } from './explain-drop.ts';

describe('a packet straight to an endpoint on which nothing listens', () => {
  /** 10.244.1.5:8080, as the EndpointSlice has it. */
  const tableWith = (endpoint: {
    readonly ready?: boolean;
    readonly serving?: boolean;
    readonly terminating?: boolean;
  }) =>
    tableOf({
      services: [service('shop/cart')],
      slices: [slice('shop/cart', { endpoints: [{ ip: '10.244.1.5', ...endpoint }] })],
    });
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
    expect(causeWith(tableWith({ ready: false, serving: true, terminating: true }))).toBe('noListener');
  });

  test('is lost if a Service led there until a moment ago', () => {
    expect(causeWith(starting, tableWith({}))).toBe('noListener');
  });

  test('is no loss of a Service if none leads there, such as a readiness probe of a new pod', () => {
    expect(causeWith()).toBeUndefined();
    expect(causeWith(starting, starting)).toBeUndefined();
  });
});
