import { parseIp } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { lbService, type RawServiceSpec } from '../testing/builders.ts';
import { clearedStatus, type DesiredStatus, statusPatch } from './service-status.ts';

const now = '2026-11-21T10:00:00Z';
const then = '2026-01-01T00:00:00Z' as unknown as Date; // text on the wire
const ingress = [{ ip: '172.18.0.50', ipMode: 'Proxy' }];
const ready = { type: 'lb.switchyard.dev/Ready', status: 'True', reason: 'Serving', message: 'it runs' } as const;
const foreign = { type: 'Other', status: 'False', reason: 'X', message: '', lastTransitionTime: then };
const written = { ...ready, lastTransitionTime: then };
const patchOf = (parts: RawServiceSpec, desired: DesiredStatus): unknown =>
  statusPatch(lbService('default/web', parts), desired, now);

describe('the patch', () => {
  test('says what is new', () => {
    expect(patchOf({}, { ingress, conditions: [ready] })).toEqual({
      loadBalancer: { ingress },
      conditions: [{ ...ready, lastTransitionTime: now }],
    });
  });
  test('is none when the status says so already', () => {
    const status = { loadBalancer: { ingress }, conditions: [foreign, written] };
    expect(patchOf({ status }, { ingress, conditions: [ready] })).toBeUndefined();
    expect(patchOf({ status }, { ingress: undefined, conditions: [ready] })).toBeUndefined();
  });
  test('keeps the transition time when only the words change, and the conditions of others where they are', () => {
    const status = { conditions: [written, foreign] };
    expect(patchOf({ status }, { ingress: undefined, conditions: [{ ...ready, message: 'elsewhere' }] })).toEqual({
      conditions: [{ ...written, message: 'elsewhere' }, foreign],
    });
  });
  test('has a new transition time when the condition turns', () => {
    const turned = { ...ready, status: 'False', reason: 'NoNodes' } as const;
    expect(patchOf({ status: { conditions: [written] } }, { ingress: undefined, conditions: [turned] })).toEqual({
      conditions: [{ ...turned, lastTransitionTime: now }],
    });
  });
  test('removes outdated own entries, with null where nothing is left', () => {
    const status = { loadBalancer: { ingress }, conditions: [written] };
    expect(patchOf({ status }, { ingress: [], conditions: [] })).toEqual({
      loadBalancer: { ingress: null },
      conditions: null,
    });
    const mixed = { conditions: [foreign, written] };
    expect(patchOf({ status: mixed }, { ingress: [], conditions: [] })).toEqual({ conditions: [foreign] });
  });
});

describe('a cleared status', () => {
  const addresses = [parseIp('172.18.0.50')];
  const theirs = { ip: '192.0.2.1' };
  test('has no ingress', () => {
    const service = lbService('default/web', { status: { loadBalancer: { ingress: [...ingress, theirs] } } });
    expect(clearedStatus(service, addresses)).toEqual({ ingress: [], conditions: [] });
  });
  test('keeps that of the implementation that is responsible now', () => {
    const service = lbService('default/web', {
      spec: { loadBalancerClass: 'example.com/lb' },
      status: { loadBalancer: { ingress: [...ingress, theirs] } },
    });
    expect(clearedStatus(service, addresses).ingress).toEqual([theirs]);
  });
});
