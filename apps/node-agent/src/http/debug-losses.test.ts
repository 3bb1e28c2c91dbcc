import { HostError, millis, parseIp } from '@switchyard/core';
import { getRequest, ManualClock, settle, wholeAnswer } from '@switchyard/core/testing';
import type { DropCounter, PlacedDrop } from '@switchyard/drops';
import { expect, test } from 'vitest';
import { lossesRoute, type OpenDrops } from './debug-losses.ts';
import { debugState } from './testing/debug-bench.ts';

const { signal } = new AbortController();

/** A TCP packet to the cluster IP of `shop/empty`, which has no endpoints, dropped by a rule. */
const refused: PlacedDrop = {
  protocol: 'TCP',
  source: parseIp('10.244.1.7'),
  destination: parseIp('10.96.0.12'),
  sourcePort: 40_000,
  destinationPort: 80,
  direction: 'request',
  isDirectionGuessed: false,
  tcpFlags: 2,
  hops: 64,
  flow: undefined,
  netns: 0,
  reason: 'NETFILTER_DROP',
  length: 60,
  count: 3,
  last: millis(0),
  stack: [],
  place: { at: 'prerouting', by: 'rule' },
};

const counter = (drops: readonly PlacedDrop[], missed = 0): DropCounter => {
  let reading = { drops, missed };
  return {
    read: () => {
      const now = reading;
      reading = { drops: [], missed: 0 };
      return now;
    },
    [Symbol.dispose]: () => undefined,
  };
};

/** The answer of one second. */
async function watch(path: string, open: OpenDrops, state = debugState()): Promise<{ status: number; body: string }> {
  const clock = new ManualClock();
  const answer = wholeAnswer(
    lossesRoute({ ...state, clock }, open)(getRequest(`/debug/losses?seconds=1${path}`), signal),
  );
  while (clock.sleeping === 0) await settle();
  await clock.advance(1000);
  return answer;
}

test('shows each loss with its Service, cause and reason, as a line of a table', async () => {
  const { status, body } = await watch('', async () => ({ counter: counter([refused]) }));
  expect(status).toBe(200);
  const [head = '', line = '', ...more] = body.split('\n');
  expect(head).toMatch(/^TIME +FROM +SERVICE +ASKED +WHERE +COUNT +CAUSE +WHY$/);
  expect(line).toMatch(
    /^10:00:00 +10\.244\.1\.7 +shop\/empty:\/TCP +10\.96\.0\.12:80\/TCP +node prerouting +3 +noEndpoints +no endpoint/,
  );
  expect(line.indexOf('noEndpoints')).toBe(head.indexOf('CAUSE'));
  expect(more).toEqual(['']);
});

test('JSON has a line about the node, then one for each loss', async () => {
  const { body } = await watch('&format=json', async () => ({ counter: counter([refused], 7) }));
  const lines = body.trim().split('\n');
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { node: 'n1', mode: 'nftables', packets: { watched: true } },
    { node: 'n1', cause: 'noEndpoints', service: 'shop/empty:/TCP', client: '10.244.1.7', count: 3 },
    { node: 'n1', missed: 7 },
  ]);
});

test('shows a namespace alone', async () => {
  const { body } = await watch('&format=json&namespace=other', async () => ({ counter: counter([refused]) }));
  expect(body.trim().split('\n')).toHaveLength(1);
});

test('where packets cannot be watched, says why and shows what the counters of Services have', async () => {
  let noEndpoints = 2;
  const drops = () => ({ noEndpoints, noLocalEndpoint: 0, sourceRange: 0 });
  const state = {
    ...debugState(),
    serviceCounters: async () => {
      const counters = new Map([['shop/empty:/TCP' as never, { connections: 9, drops: drops() }]]);
      noEndpoints += 4;
      return [counters];
    },
  };
  const open: OpenDrops = () => Promise.reject(new HostError('x', 'bpf failed with EPERM'));
  const { status, body } = await watch('', open, state);
  expect(status).toBe(200);
  expect(body).toMatch(/^# Dropped packets cannot be watched: bpf failed with EPERM\n/);
  expect(body).toMatch(/ - +shop\/empty:\/TCP +10\.96\.0\.12:80\/TCP +node +4 +noEndpoints/);
});

test('an answer whose pieces nothing reads, as to HEAD, opens nothing', async () => {
  let opened = 0;
  const open: OpenDrops = async () => {
    opened++;
    return { counter: counter([]) };
  };
  const route = lossesRoute(debugState(), open);
  for (let round = 0; round < 9; round++)
    expect(await route(getRequest('/debug/losses'), signal)).toMatchObject({ status: 200 });
  expect(opened).toBe(0);
});

test('an error that is no obstacle of the host cuts the answer', async () => {
  const open: OpenDrops = () => Promise.reject(new TypeError('broken'));
  await expect(wholeAnswer(lossesRoute(debugState(), open)(getRequest('/debug/losses'), signal))).rejects.toThrow(
    'broken',
  );
});

test('serves four at a time, and frees the place and the counter at the end', async () => {
  let open = 0;
  const route = lossesRoute({ ...debugState(), clock: new ManualClock() }, async () => {
    open++;
    return { counter: { ...counter([]), [Symbol.dispose]: () => void open-- } };
  });
  const ends = Array.from({ length: 4 }, () => new AbortController());
  const watched = ends.map(async ({ signal: end }) => wholeAnswer(route(getRequest('/debug/losses?seconds=60'), end)));
  await settle();
  expect(open).toBe(4);
  expect(await wholeAnswer(route(getRequest('/debug/losses'), signal))).toMatchObject({ status: 429 });
  for (const end of ends) end.abort();
  await Promise.allSettled(watched);
  expect(open).toBe(0);
});

test.each([
  ['seconds=0', 'seconds "0" is no number from 1 to 3600'],
  ['seconds=3601', 'seconds "3601" is no number from 1 to 3600'],
  ['seconds=1e3', 'seconds "1e3" is no number'],
  ['format=xml', 'format "xml" is neither text nor json'],
  ['namespace=a&namespace=b', 'namespace is given more than once'],
  ['name=a', 'unknown parameter "name"'],
])('refuses ?%s and shows how to ask', async (query, fault) => {
  const answer = await wholeAnswer(lossesRoute(debugState())(getRequest(`/debug/losses?${query}`), signal));
  expect(answer.status).toBe(400);
  expect(answer.body).toContain(fault);
  expect(answer.body).toContain('usage: /debug/losses?');
});
