import { millis } from '@switchyard/core';
import type { HttpAnswer, HttpRequest } from '@switchyard/core/health';
import { expect, test } from 'vitest';
import type { DrainAnswer, DrainRequest } from './drain.ts';
import { gateHandler } from './gate-routes.ts';
import { pod } from './testing/cluster.ts';

const { signal } = new AbortController();
const safe: DrainAnswer = {
  addresses: [pod],
  isSafe: true,
  waited: millis(41),
  services: [],
  node: undefined,
  nodes: { total: 3, applied: 3, waiting: [] },
  open: { TCP: 0 },
  reasons: [],
};

async function ask(target: string, answer: Partial<DrainAnswer> = {}, isInSync = true) {
  const [path = '', query = ''] = target.split('?');
  const requests: DrainRequest[] = [];
  const drain = async (request: DrainRequest): Promise<DrainAnswer> => {
    requests.push(request);
    return { ...safe, ...answer };
  };
  const handler = gateHandler({ isInSync: () => isInSync, drain, log: () => undefined });
  const request: HttpRequest = { method: 'GET', path, query: new URLSearchParams(query), headers: {}, body: '' };
  const { status, body } = (await handler(request, signal)) as HttpAnswer;
  return { status, body, requests };
}

test('a pod that can be stopped gets 200, another one 503 with the reasons', async () => {
  const { status, requests } = await ask('/drain?pod=10.244.1.5');
  expect({ status, requests }).toEqual({
    status: 200,
    requests: [{ addresses: [pod], timeout: 20_000, connections: 'wait', goal: 'stop' }],
  });
  expect(await ask('/drain?pod=10.244.1.5', { isSafe: false, reasons: ['node n2 is behind'] })).toMatchObject({
    status: 503,
    body: expect.stringContaining('node n2 is behind') as string,
  });
});

test('all addresses of the pod, the time and the form are taken', async () => {
  const { body, requests } = await ask('/drain?pod=10.244.1.5,fd00::5&seconds=60&connections=ignore&format=json');
  expect(requests).toEqual([
    { addresses: ['10.244.1.5', 'fd00::5'], timeout: 60_000, connections: 'ignore', goal: 'stop' },
  ]);
  expect(JSON.parse(body)).toMatchObject({ isSafe: true, waited: 41 });
});

test('a pod that every node knows as ready', async () => {
  const { status, body, requests } = await ask('/ready?pod=10.244.1.5');
  expect({ status, goal: requests[0]?.goal }).toEqual({ status: 200, goal: 'start' });
  expect(body).toMatch(/^ready on all nodes: 10.244.1.5/);
});

test.each([
  ['', /pod "" is no list of addresses/],
  ['pod=cart', /pod "cart"/],
  ['pod=10.244.1.5&seconds=0', /seconds "0" is no number from 1 to 3600/],
  ['pod=10.244.1.5&connections=no', /connections "no" is none of wait, wait-udp, ignore/],
  ['pod=10.244.1.5&format=xml', /format "xml"/],
  ['pod=10.244.1.5&wait=1', /unknown parameter "wait"/],
  ['pod=10.244.1.5&pod=10.244.1.6', /pod is given more than once/],
])('a wrong query %s gets 400 and the usage', async (query, fault) => {
  const { status, body, requests } = await ask(`/drain?${query}`);
  expect({ status, requests }).toEqual({ status: 400, requests: [] });
  expect(body).toMatch(fault);
  expect(body).toContain('usage: /drain?pod=');
});

test('a client that ends before its answer does no harm', async () => {
  const client = new AbortController();
  const drain = (_: DrainRequest, end: AbortSignal): Promise<DrainAnswer> =>
    new Promise((_resolve, reject) => {
      end.addEventListener('abort', () => reject(end.reason as Error));
    });
  const handler = gateHandler({ isInSync: () => true, drain, log: () => undefined });
  const query = new URLSearchParams('pod=10.244.1.5');
  const answer = handler({ method: 'GET', path: '/drain', query, headers: {}, body: '' }, client.signal);
  client.abort();
  expect(await answer).toMatchObject({ status: 500 });
});

test('many reasons are cut, and counted', async () => {
  const reasons = Array.from({ length: 5000 }, (_, index) => `node n${index} is behind`);
  const { body } = await ask('/drain?pod=10.244.1.5', { isSafe: false, reasons });
  expect(body.split('\n')).toHaveLength(1 + 20 + 1 + 1);
  expect(body).toContain('and 4980 more');
});

test.each([
  ['/healthz', true, 200],
  ['/healthz', false, 503],
  ['/', true, 404],
])('%s, in sync: %s, answers %i', async (path, isInSync, status) => {
  expect((await ask(path, {}, isInSync)).status).toBe(status);
});
