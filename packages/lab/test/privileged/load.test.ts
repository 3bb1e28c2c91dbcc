import { ipFamilies, millis, systemClock } from '@switchyard/core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLab, createProber, type Lab, type LoadResult, startEchoServer, startLoad } from '../../src/index.ts';

const { signal } = new AbortController();
let lab: Lab;

beforeAll(async () => {
  lab = await createLab({ name: 'labload', nodes: 1, ipFamilies }, signal);
  startEchoServer(lab.nodes[0]!, { pod: 'server', http: [8080], readyAfter: 3600 });
  await using prober = await createProber(lab.client, signal);
  const address = '172.18.0.11';
  while ((await prober.probe({ protocol: 'http', address, port: 8080 })).status !== 'answered') {
    await systemClock.sleep(millis(50), signal);
  }
});

afterAll(async () => {
  await lab?.[Symbol.asyncDispose]();
});

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

test('sends at the scheduled times, one connection each, and reports the pod that answered', async () => {
  await using load = startLoad(lab.client, { url: 'http://172.18.0.11:8080/', rate: 50, duration: millis(2000) });
  const seen: LoadResult[] = [];
  for await (const result of load) seen.push(result);
  const results = await load.finished;
  expect(results.map((result) => result.sequence)).toEqual(Array.from({ length: 100 }, (_, index) => index));
  expect(seen).toHaveLength(100);
  expect(new Set(results.map((result) => `${result.outcome} ${result.answeredBy} ${result.httpStatus}`))).toEqual(
    new Set(['answered server 200']),
  );
  const first = results[0]!;
  for (const result of results) {
    expect(result.scheduledAt - first.scheduledAt).toBeCloseTo(result.sequence * 20, 1);
    expect(result.sentAt).toBeGreaterThanOrEqual(result.scheduledAt - 0.01);
    expect(result.doneAt).toBeGreaterThan(result.sentAt);
  }
  expect(median(results.map((result) => result.sentAt - result.scheduledAt))).toBeLessThan(5);
  expect(Math.abs(first.sentAt - Date.now())).toBeLessThan(10_000);
});

test('keeps its pace without answers: an open loop omits no request', async () => {
  await lab.nodes[0]!.run('ip', ['route', 'add', 'blackhole', '172.18.0.100/32']);
  await using load = startLoad(lab.client, {
    url: 'http://172.18.0.11:8080/',
    rate: 20,
    timeout: millis(400),
    duration: millis(1500),
  });
  const results = await load.finished;
  await lab.nodes[0]!.run('ip', ['route', 'del', 'blackhole', '172.18.0.100/32']);
  expect(results).toHaveLength(30);
  expect(new Set(results.map((result) => result.outcome))).toEqual(new Set(['timeout']));
  expect(median(results.map((result) => result.sentAt - result.scheduledAt))).toBeLessThan(5);
  expect(median(results.map((result) => result.doneAt - result.sentAt))).toBeGreaterThanOrEqual(399);
});

test.each([
  { name: 'a closed port', url: 'http://[fd00:172:18::11]:1/', outcome: 'refused' },
  { name: 'no route', url: 'http://10.244.1.2:80/', outcome: 'unreachable' },
  { name: 'a status other than 2xx', url: 'http://172.18.0.11:8080/readyz', outcome: 'error' },
])('$name has the outcome $outcome', async ({ url, outcome }) => {
  await using load = startLoad(lab.client, { url, rate: 10, duration: millis(300) });
  expect((await load.finished).map((result) => result.outcome)).toEqual([outcome, outcome, outcome]);
});

test('stop sends no more, waits for those in flight and returns all', async () => {
  await using load = startLoad(lab.client, { url: 'http://172.18.0.11:8080/', rate: 100, duration: millis(60_000) });
  let count = 0;
  for await (const _ of load) if (++count === 20) break;
  const results = await load.stop();
  expect(results.length).toBeGreaterThanOrEqual(20);
  expect(results.length).toBeLessThan(200);
  expect(results.map((result) => result.sequence)).toEqual(results.map((_, index) => index));
});

test('the end of the generator before its time is an error, also for who iterates', async () => {
  await using load = startLoad(lab.client, { url: 'http://172.18.0.11:8080/', rate: 20, duration: millis(60_000) });
  const first = await load[Symbol.asyncIterator]().next();
  expect(first.done).toBe(false);
  process.kill(load.pid, 'SIGKILL');
  await expect(load.finished).rejects.toThrow(/the load generator ended with SIGKILL; see .*load/);
});
