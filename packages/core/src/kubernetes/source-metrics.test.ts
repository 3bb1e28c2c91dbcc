import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../testing/manual-clock.ts';
import { MemoryMetrics } from '../testing/memory-metrics.ts';
import type { Exchange } from '../testing/scripted-api-server.ts';
import { seconds } from '../base/time.ts';
import { SourceMetrics } from './source-metrics.ts';
import { gone, modified, ReflectorHarness } from './testing/reflector-harness.ts';

let h: ReflectorHarness;

beforeEach(async () => {
  h = await ReflectorHarness.create();
});

afterEach(() => h[Symbol.asyncDispose]());

const restarts = (): Readonly<Record<string, number>> => h.metrics.like('watch_restarts');
const restart = (reason: string): string => `switchyard_source_watch_restarts_total{reason=${reason},resource=Service}`;

describe('restarts of a watch, by why', () => {
  test.each<readonly [string, (exchange: Exchange) => void]>([
    ['ended', (exchange) => exchange.stream().send(modified('a', '11')).end()],
    ['expired', (exchange) => exchange.stream().send(gone).end()],
    ['expired', (exchange) => exchange.answer(410, { kind: 'Status', message: 'too old' })],
    ['cut', (exchange) => exchange.stream().write('{"type":"ADD') && exchange.reset()],
    ['unreachable', (exchange) => exchange.answer(200, {}, { 'content-encoding': 'gzip' })],
    ['refused', (exchange) => exchange.answer(503, 'service unavailable')],
  ])('%s', async (reason, end) => {
    h.start();
    (await h.sync('10', 'a')).send(modified('a', '11')).end();
    await h.until(() => restarts()[restart('ended')] === 1);
    end(await h.next());
    const expected = reason === 'ended' ? { [restart('ended')]: 2 } : { [restart('ended')]: 1, [restart(reason)]: 1 };
    await h.until(() => JSON.stringify(restarts()) !== JSON.stringify({ [restart('ended')]: 1 }));
    expect(restarts()).toEqual(expected);
  });
});

test('full lists are counted and dated', async () => {
  h.start();
  const before = h.clock.now();
  (await h.sync('10', 'a')).send(gone).end();
  await h.sync('20', 'a');
  expect(h.metrics.like('relists_total')).toEqual({ 'switchyard_source_relists_total{resource=Service}': 2 });
  const dated = h.metrics.values.get('switchyard_source_last_relist_timestamp_seconds{resource=Service}') ?? 0;
  expect(dated * 1000).toBeGreaterThanOrEqual(before - 1);
  expect(dated * 1000).toBeLessThanOrEqual(h.clock.now() + 1);
});

test('requests are counted by status; watches have no duration, lists have', async () => {
  h.start();
  (await h.next()).answer(400, { kind: 'Status', message: 'sendInitialEvents is unknown' });
  (await h.next()).answer(200, { metadata: { resourceVersion: '5' }, items: [] });
  (await h.next()).answer(503, 'away');
  (await h.next()).reset();
  const { host } = h.server.url;
  const requests = (code: string): string => `rest_client_requests_total{code=${code},host=${host},method=GET}`;
  const expected = { [requests('400')]: 1, [requests('200')]: 1, [requests('503')]: 1, [requests('<error>')]: 1 };
  await h.until(() => Object.keys(h.metrics.like('rest_client_requests_total')).length === 4);
  expect(h.metrics.like('rest_client_requests_total')).toEqual(expected);
  const durations = h.metrics.observed.get(`rest_client_request_duration_seconds{host=${host},verb=GET}`);
  expect(durations).toEqual([expect.any(Number)]);
});

describe('the time since the last word', () => {
  test('is known per resource, from the start of the process on; of ServiceCIDR once there was one', async () => {
    const clock = new ManualClock();
    const metrics = new SourceMetrics(new MemoryMetrics(), clock);
    await clock.advance(seconds(2));
    metrics.listed('Service');
    await clock.advance(seconds(3));
    metrics.heard('Node');
    metrics.heard('ServiceCIDR');
    await clock.advance(seconds(1));
    expect(Object.fromEntries(metrics.lags())).toEqual({
      Service: 4000,
      EndpointSlice: 6000,
      Node: 1000,
      ServiceCIDR: 1000,
    });
    expect(metrics.silence).toBe(6000);
  });

  test('ends for all resources before contact counts as restored, and then says how long it was', async () => {
    const clock = new ManualClock(1000);
    const restored: number[] = [];
    const metrics = new SourceMetrics(new MemoryMetrics(), clock, (silence) => restored.push(silence));
    const all = ['Service', 'EndpointSlice', 'Node'] as const;
    await clock.advance(seconds(149));
    for (const resource of all) metrics.heard(resource);
    expect(restored).toEqual([]);
    await clock.advance(seconds(300));
    metrics.heard('ServiceCIDR');
    metrics.heard('Service');
    await clock.advance(seconds(1));
    metrics.heard('Node');
    expect(restored).toEqual([]);
    metrics.heard('EndpointSlice');
    metrics.heard('EndpointSlice');
    expect(restored).toEqual([301_000]);
  });

  test('ends with the answer to a watch after an outage, before a line of it', async () => {
    h.start();
    (await h.sync('10', 'a')).end();
    (await h.next()).answer(503, 'away');
    const before = h.clock.monotonic();
    (await h.next()).stream();
    await h.until(() => h.clock.monotonic() - (h.sourceMetrics.lags().get('Service') ?? Infinity) >= before);
  });

  test('begins anew with a bookmark', async () => {
    h.start();
    const watch = await h.sync('10', 'a');
    await h.pause();
    const before = h.clock.monotonic();
    watch.send({ type: 'BOOKMARK', object: { kind: 'Service', metadata: { resourceVersion: '12' } } });
    await h.until(() => h.clock.monotonic() - (h.sourceMetrics.lags().get('Service') ?? Infinity) >= before);
  });
});
