import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { millis, systemClock } from '@switchyard/core';
import { expect, test } from 'vitest';
import { type ChangesLine, followAgent, NodeWatch } from './agent-streams.ts';

const time = (second: number): string => new Date(second * 1000).toISOString();

function changes(second: number, endpoints: ChangesLine['endpoints'] & {}, more: object = {}): ChangesLine {
  return { time: time(second), service: 'shop/web:http/TCP', ipFamily: 'IPv4', endpoints, ...more };
}
const endpoint = (address: string, ready = true, terminating = false) => ({ address, ready, terminating });

test('an apply is a difference to the state before', () => {
  const watch = new NodeWatch('node1');
  watch.noteChanges({ time: time(1) });
  watch.noteChanges(changes(1, [endpoint('a')], { before: true }));
  watch.noteChanges(changes(2, [endpoint('a'), endpoint('b', false)]));
  watch.noteChanges(changes(3, [endpoint('a', false, true), endpoint('b')]));
  watch.noteChanges(changes(4, [endpoint('b')]));
  watch.clock.note(millis(1000), { sent: millis(11_001), arrived: millis(11_000) });
  expect(watch.applies.map(({ at, node, address, condition }) => `${at} ${node} ${address} ${condition}`)).toEqual([
    '12000 node1 b notReady',
    '13000 node1 a terminating',
    '13000 node1 b ready',
    '14000 node1 a removed',
  ]);
});

test('only lost packets of these Services count', () => {
  const watch = new NodeWatch('node1');
  const loss = { time: time(1), cause: 'noEndpoints', why: 'none', certainty: 'sure', count: 3 };
  for (const services of [['shop/web:http/TCP'], ['shop/web2:http/TCP'], ['shop/db:/TCP', 'shop/web:http/TCP']])
    watch.noteLosses({ ...loss, services }, ['shop/web']);
  watch.noteLosses({ ...loss, service: 'shop/web:/UDP' }, ['shop/web']);
  watch.noteLosses({ time: time(1) }, ['shop/web']);
  expect(watch.packets.map(({ service, count }) => `${service} ${count}`)).toEqual([
    'shop/web:http/TCP 3',
    'shop/web:http/TCP 3',
    'shop/web:/UDP 3',
  ]);
});

test.each([
  [{ watched: true }, undefined],
  [{ watched: false, why: 'no BTF' }, 'no BTF'],
])('packets %j', (packets, blindness) => {
  const watch = new NodeWatch('node1');
  watch.noteLosses({ time: time(1), packets }, []);
  expect(watch.state.blindness).toBe(blindness);
});

test('follows both streams; one that is refused is reported and counts as begun', async () => {
  const asked: string[] = [];
  const server = createServer(({ url = '' }, response) => {
    asked.push(url);
    if (url.startsWith('/debug/losses')) return response.writeHead(503).end('too many watchers');
    const head = { time: time(1), node: 'node1', isObserver: true };
    const lines = [head, changes(1, [endpoint('a')], { before: true }), changes(1, [])];
    response.end(lines.map((line) => `${JSON.stringify(line)}\n`).join('\n'));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const watch = new NodeWatch('node1');
  const warnings: string[] = [];
  let begun = 0;
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const options = {
    services: ['shop/web'],
    limit: 60,
    clock: systemClock,
    warn: (text: string) => void warnings.push(text),
    onBegin: () => void begun++,
  };
  await followAgent({ node: 'node1', url }, watch, options, new AbortController().signal);
  server.close();
  expect(asked.toSorted()).toEqual([
    '/debug/changes?seconds=60&service=shop%2Fweb',
    '/debug/losses?format=json&seconds=60&namespace=shop',
  ]);
  expect(watch.applies).toMatchObject([{ address: 'a', condition: 'removed' }]);
  expect(watch.state.accuracy).toBeGreaterThan(0);
  expect(watch.state.isObserver).toBe(true);
  expect(watch.state.blindness).toContain('503');
  expect(warnings).toEqual([expect.stringContaining('too many watchers')]);
  expect(begun).toBe(2);
});
