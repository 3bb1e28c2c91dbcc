import { describe, expect, test } from 'vitest';
import type { ServiceForwarding } from '../../model/forwarding/forwarding-table.ts';
import { type LogFields, noopLogger } from '../../base/log.ts';
import { service, slice } from '../../testing/builders.ts';
import { tableOf } from '../../testing/cluster.ts';
import { seconds } from '../../base/time.ts';
import type { BackendCapabilities } from '../dataplane-backend.ts';
import { RecordingBackend } from '../../testing/recording-backend.ts';
import { missingFeatureLog, missingFeatures } from './family-log.ts';

const none: BackendCapabilities = {
  usesKernelConntrack: true,
  sessionAffinity: false,
  sourceRanges: false,
  minSyncPeriod: seconds(0),
};
const all: BackendCapabilities = { ...none, sessionAffinity: true, sourceRanges: true };

function forwardingOf(overrides: Parameters<typeof service>[1]): ServiceForwarding {
  const table = tableOf({
    services: [service('shop/cart', overrides)],
    slices: [slice('shop/cart', { endpoints: ['10.244.1.5'] })],
  });
  const found = [...table.services.values()][0];
  if (found === undefined) throw new Error('the service is not in the table');
  return found;
}

const plain = forwardingOf({});
const sticky = forwardingOf({ affinitySeconds: 10 });
const guarded = forwardingOf({ loadBalancerIps: ['198.51.100.7'], sourceRanges: ['203.0.113.0/24'] });

describe('missingFeatures', () => {
  test.each([
    { title: 'a plain service needs no feature', of: plain, capabilities: none, lacks: [] },
    { title: 'affinity', of: sticky, capabilities: none, lacks: ['sessionAffinity'] },
    { title: 'source ranges', of: guarded, capabilities: none, lacks: ['loadBalancerSourceRanges'] },
    { title: 'a backend that does everything lacks nothing', of: guarded, capabilities: all, lacks: [] },
  ])('$title', ({ of, capabilities, lacks }) => {
    expect(missingFeatures(of, capabilities)).toEqual(lacks);
  });
});

test('one warning per service, again only when something else is lacking or it came back', () => {
  const warnings: LogFields[] = [];
  const logger = { ...noopLogger, warn: (_: string, fields?: LogFields) => void warnings.push(fields ?? {}) };
  const log = missingFeatureLog({ backend: new RecordingBackend({ capabilities: none }), logger });
  const change = (upserted: readonly ServiceForwarding[], removed: readonly ServiceForwarding[] = []): number => {
    log.note({ upserted, removed: removed.map((one) => one.key) });
    return warnings.length;
  };
  expect(change([plain])).toBe(0);
  expect(change([sticky])).toBe(1);
  expect(change([sticky])).toBe(1);
  expect(change([guarded])).toBe(2);
  expect(change([plain])).toBe(2);
  expect(change([guarded])).toBe(3);
  expect(change([], [guarded])).toBe(3);
  expect(change([guarded])).toBe(4);
  expect(warnings[0]).toEqual({ ipFamily: 'IPv4', service: sticky.key, lacks: ['sessionAffinity'] });
});
