import { systemClock } from '@switchyard/core';
import { anonymousConnection, runAsLeader, sendJson } from '@switchyard/core/kubernetes';
import { MemoryLogger } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import { type Harness, startHarness, summary } from './harness.ts';

const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases';
const lease = (holder: string, more: object = {}): object => ({
  metadata: { name: 'lb' },
  spec: {
    holderIdentity: holder,
    leaseDurationSeconds: 15,
    acquireTime: '2026-11-21T10:00:00.000000Z',
    renewTime: '2026-11-21T10:00:00.000000Z',
    leaseTransitions: 0,
    ...more,
  },
});

test('is made, read, renewed and deleted; a writer that saw an old one is refused', async () => {
  await using api = await startHarness();
  const watch = await api.watch(`${leases}?watch=true`);
  const created = await api.send('POST', leases, lease('a'));
  expect(created.status).toBe(201);
  expect(created.body.spec).toMatchObject({ holderIdentity: 'a', leaseTransitions: 0 });
  expect((await api.get(`${leases}/lb`)).body).toEqual(created.body);
  const next = (holderIdentity: string): object => ({
    ...created.body,
    spec: { ...created.body.spec, holderIdentity },
  });
  const renewed = await api.send('PUT', `${leases}/lb`, next(''));
  expect(renewed.body.spec.holderIdentity).toBe('');
  expect((await api.send('PUT', `${leases}/lb`, next('b'))).status).toBe(409);
  expect((await api.patch(`${leases}/lb`, 'merge', { spec: { leaseTransitions: 3 } })).body.spec.leaseTransitions).toBe(
    3,
  );
  expect((await api.send('DELETE', `${leases}/lb`)).body).toMatchObject({ kind: 'Status', status: 'Success' });
  await watch.until(4);
  expect(summary(watch.events)).toEqual(['ADDED lb', 'MODIFIED lb', 'MODIFIED lb', 'DELETED lb']);
});

test.each([
  ['a duration of none', { leaseDurationSeconds: 0 }, 'must be greater than 0'],
  ['fewer transitions than none', { leaseTransitions: -1 }, 'must be greater than or equal to 0'],
  ['a time that is none', { renewTime: 'now' }, 'must be a time'],
])('%s is refused', async (_, more, message) => {
  await using api = await startHarness();
  const { status, body } = await api.send('POST', leases, lease('a', more));
  expect({ status, message: body.message }).toEqual({ status: 422, message: expect.stringContaining(message) });
});

describe('leader election', () => {
  const candidate = (api: Harness, identity: string, stop: AbortSignal): { readonly led: Promise<void> } => {
    const led = Promise.withResolvers<void>();
    const connection = anonymousConnection(new URL(api.url));
    const options = {
      send: sendJson.bind(undefined, { connection, clock: systemClock, userAgent: 'test' }),
      namespace: 'kube-system',
      name: 'lb',
      identity,
      clock: systemClock,
      random: () => 0,
      log: new MemoryLogger(),
      timings: { leaseDuration: 15_000, renewDeadline: 10_000, retryPeriod: 50 } as never,
    };
    const work = (signal: AbortSignal): Promise<void> => {
      led.resolve();
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    };
    void runAsLeader(options, work, stop).catch(() => undefined);
    return { led: led.promise };
  };

  test('works on it: one after the other, without waiting for a lease that was given back', async () => {
    await using api = await startHarness();
    const first = new AbortController();
    const second = new AbortController();
    await candidate(api, 'a', first.signal).led;
    const { led } = candidate(api, 'b', second.signal);
    expect((await api.get(`${leases}/lb`)).body.spec.holderIdentity).toBe('a');
    const stoppedAt = performance.now();
    first.abort(new Error('stopped'));
    await led;
    expect(performance.now() - stoppedAt).toBeLessThan(5000);
    expect((await api.get(`${leases}/lb`)).body.spec).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 });
    second.abort(new Error('stopped'));
    await expect.poll(async () => (await api.get(`${leases}/lb`)).body.spec.holderIdentity).toBe('');
  });
});
