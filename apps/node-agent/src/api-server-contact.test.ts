import { type Clock, millis, nodeName, parseIp, seconds, systemClock } from '@switchyard/core';
import { MemoryLogger, node, replaceAll, ScriptedApiServer, serveWatchList, service } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import { contactRestoredEvent } from './events/agent-events.ts';
import { noopMetricsPage } from './metrics/testing/metrics-pages.ts';
import { openSource } from './open-source.ts';
import { AgentBench, configOf } from './testing/agent-bench.ts';

const asking = service('shop/evil', { externalIps: ['192.0.2.77'], ports: [{ port: 6443 }] });
const cluster = replaceAll({ services: [asking], nodes: [node('n1', { addresses: ['192.0.2.1'] })] });

/** External IPs that the IPv4 backend has. */
function externalIps(bench: AgentBench): readonly string[] {
  const frontends = [...(bench.backends.IPv4.table?.services.values() ?? [])].flatMap((one) => one.frontends);
  return frontends.filter(({ kind }) => kind === 'externalIP').map(({ address }) => address);
}

test('a frontend at an address to which the API server moves is taken back without a word of the API server', async () => {
  await using bench = new AgentBench(configOf());
  await bench.reachAt('192.0.2.200', 6443);
  await bench.push(cluster);
  expect(externalIps(bench)).toEqual([parseIp('192.0.2.77')]);
  await bench.reachAt('192.0.2.77', 6443);
  expect(externalIps(bench)).toEqual([]);
});

test('the age of the rules grows while the API server is not heard', async () => {
  await using bench = new AgentBench(configOf());
  await bench.push(cluster);
  const before = bench.backends.IPv4.heartbeats.length;
  bench.silence = seconds(150);
  for (let round = 0; round < 3; round++) await bench.clock.advance(10_000);
  expect(bench.backends.IPv4.heartbeats).toHaveLength(before);
  bench.silence = seconds(1);
  await bench.clock.advance(10_000);
  expect(bench.backends.IPv4.heartbeats).toHaveLength(before + 1);
});

/** The machine's clock, some time ahead. */
class ShiftedClock implements Clock {
  ahead = 0;
  now = (): ReturnType<Clock['now']> => millis(systemClock.now() + this.ahead);
  monotonic = (): ReturnType<Clock['monotonic']> => millis(systemClock.monotonic() + this.ahead);
  sleep: Clock['sleep'] = (duration, signal) => systemClock.sleep(duration, signal);
}

test('an API server that is heard again after a while is an Event on the Node, with the time it was gone', async () => {
  await using server = await ScriptedApiServer.listen();
  const clock = new ShiftedClock();
  const source = { kind: 'server', server: server.url } as const;
  const needs = {
    nodeName: nodeName('n1'),
    clock,
    random: () => 0.5,
    logger: new MemoryLogger(),
    metricsPage: noopMetricsPage,
  };
  const opened = await openSource(source, needs);
  await using _ = opened.events;
  expect(opened.contact?.addresses()).toEqual([{ address: parseIp('127.0.0.1'), port: server.port }]);
  clock.ahead = seconds(312);
  expect(Math.floor((opened.contact?.silence() ?? 0) / 1000)).toBe(312);
  const stop = new AbortController();
  const reading = (async () => {
    for await (const _batch of opened.source.batches(stop.signal)) continue;
  })();
  for (const path of ['/api/v1/services', '/apis/discovery.k8s.io/v1/endpointslices', '/api/v1/nodes']) {
    serveWatchList(await server.next(path), '7');
  }
  const event = await server.next('/apis/events.k8s.io/v1/namespaces/default/events');
  expect(event.method).toBe('POST');
  event.answer(201, {});
  expect(opened.contact?.silence()).toBeLessThan(seconds(30));
  stop.abort();
  await reading;
});

test('the Event says for how long the API server was not heard', () => {
  expect(contactRestoredEvent(nodeName('n1'), seconds(312.4))).toMatchObject({
    reason: 'ApiServerContactRestored',
    regarding: { kind: 'Node', name: 'n1' },
    note: 'the API server was not heard for 312 s; Services were forwarded as before meanwhile',
  });
});
