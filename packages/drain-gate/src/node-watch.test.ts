import { HostError, type ServiceKey } from '@switchyard/core';
import { ManualClock } from '@switchyard/core/testing';
import { beforeEach, expect, test } from 'vitest';
import { type NodeProgress, NodeWatch } from './node-watch.ts';
import type { NodeQuestion, NodeReply, PodUse } from './protocol.ts';
import { pod } from './testing/cluster.ts';

const cart = 'shop/cart' as ServiceKey;
const stop = new AbortController();

interface Asked {
  readonly question: NodeQuestion;
  readonly signal: AbortSignal;
  readonly reply: (reply: Partial<NodeReply>) => Promise<void>;
  readonly fail: (error: Error) => Promise<void>;
}

let clock: ManualClock;
let asked: Asked[];
let watch: NodeWatch;

beforeEach(() => {
  clock = new ManualClock();
  asked = [];
  watch = new NodeWatch({
    clock,
    failures: 3,
    ask: (question, signal) => {
      const { promise, resolve, reject } = Promise.withResolvers<NodeReply>();
      signal.addEventListener('abort', () => reject(signal.reason as Error));
      asked.push({
        question,
        signal,
        reply: async (reply) => {
          resolve({ node: 'n1', slicesVersion: 0, failed: [], used: [], ...reply });
          await clock.advance(0);
        },
        fail: async (error) => {
          reject(error);
          await clock.advance(0);
        },
      });
      return promise;
    },
  });
});

function want(version: number, signal = stop.signal): NodeProgress[] {
  const news: NodeProgress[] = [];
  const pods = [{ address: pod, service: cart }];
  watch.add({ version, pods, signal, note: (progress) => news.push(progress) });
  return news;
}

const use = (spec: Partial<PodUse>): PodUse => ({ address: pod, service: cart, policies: ['Local'], ...spec });
const applied: NodeProgress = { kind: 'applied' };
const waiting = (why: RegExp): unknown => ({ kind: 'waiting', why: expect.stringMatching(why) });

test('a node that has the version, and does not choose the pod, has applied it', async () => {
  const news = want(105);
  expect(asked[0]?.question).toMatchObject({ after: 105, services: [cart] });
  await asked[0]?.reply({ slicesVersion: 105 });
  expect(news).toEqual([applied]);
  expect(asked).toHaveLength(1);
});

test.each<readonly [string, Partial<NodeReply>, RegExp]>([
  ['is behind', { slicesVersion: 104 }, /has applied version 104, not yet 105/],
  ['failed to apply the Service', { slicesVersion: 105, failed: [cart] }, /could not apply shop\/cart/],
  [
    'has no other endpoint',
    { slicesVersion: 105, used: [use({ policies: ['Cluster'] })] },
    /shop\/cart has no other endpoint/,
  ],
  [
    'has none there, for pods with policy Local',
    { slicesVersion: 105, used: [use({})] },
    /policy Local, and no other endpoint there/,
  ],
  [
    'observes a proxy that is late',
    { slicesVersion: 105, used: [use({ policies: ['Cluster'], isLate: true })] },
    /not applied it yet: the rules of its kube-proxy for shop\/cart are those of before/,
  ],
  [
    'is still checked by a load balancer',
    { slicesVersion: 105, used: [use({ checkedBy: [{ address: '172.18.0.5', failures: 2 }] })] },
    /load balancer 172.18.0.5 of shop\/cart got 2 of 3 failing health checks/,
  ],
  [
    'is used by a load balancer that says so, after more failing checks than are needed',
    { slicesVersion: 105, used: [use({ checkedBy: [{ address: '172.18.0.5', failures: 9, announced: 'uses' }] })] },
    /load balancer 172.18.0.5 of shop\/cart still uses the node/,
  ],
])('a node that %s keeps the gate closed', async (_, reply, why) => {
  const news = want(105);
  await asked[0]?.reply(reply);
  expect(news).toEqual([waiting(why)]);
  await clock.advance(50);
  await asked[1]?.reply({ slicesVersion: 106 });
  expect(news).toEqual([waiting(why), applied]);
});

test.each<readonly [string, NonNullable<PodUse['checkedBy']>]>([
  [
    'have left the node',
    [
      { address: '172.18.0.5', failures: 3 },
      { address: '172.18.0.6', failures: 7 },
    ],
  ],
  ['say that they have left it, before a check failed', [{ address: '172.18.0.5', failures: 0, announced: 'left' }]],
  ['are none', []],
])('load balancers that %s do not', async (_, checkedBy) => {
  const news = want(105);
  await asked[0]?.reply({ slicesVersion: 105, used: [use({ checkedBy })] });
  expect(news).toEqual([applied]);
});

test('what another pod is used for does not matter', async () => {
  const news = want(105);
  await asked[0]?.reply({
    slicesVersion: 105,
    used: [use({ service: 'shop/pay' as ServiceKey, policies: ['Cluster'] })],
  });
  expect(news).toEqual([applied]);
});

test('drains share a request, and each ends with its own version', async () => {
  const first = want(105);
  const [second, third] = [want(107), want(110)];
  await asked[0]?.reply({ slicesVersion: 105 });
  expect([first, second, third]).toEqual([[applied], [], []]);
  expect(asked[1]?.question.after).toBe(107);
  await asked[1]?.reply({ slicesVersion: 120 });
  expect([second, third]).toEqual([[applied], [applied]]);
  expect(asked).toHaveLength(2);
});

test('a request that only waits for the next change makes room for another drain', async () => {
  want(105);
  await asked[0]?.reply({ slicesVersion: 105, used: [use({ policies: ['Cluster'] })] });
  await clock.advance(50);
  expect(asked[1]?.question).toMatchObject({ after: 106, timeout: 10_000 });
  const second = want(106);
  await clock.advance(0);
  expect(asked[1]?.signal.aborted).toBe(true);
  expect(asked[2]?.question.after).toBe(106);
  await asked[2]?.reply({ slicesVersion: 106 });
  expect(second).toEqual([applied]);
});

test('health checks are looked at again soon', async () => {
  want(105);
  await asked[0]?.reply({ slicesVersion: 105, used: [use({ checkedBy: [{ address: '172.18.0.5', failures: 0 }] })] });
  await clock.advance(50);
  expect(asked[1]?.question).toMatchObject({ after: 106, timeout: 200 });
});

test('a node that does not answer gets further questions, with growing pauses, until the drain ends', async () => {
  const end = new AbortController();
  const news = want(105, end.signal);
  const times: number[] = [];
  for (let time = 0; time < 4000; time += 100) {
    if (asked.length > times.length) {
      times.push(time);
      await asked.at(-1)?.fail(new HostError('x', 'connect ECONNREFUSED'));
    }
    await clock.advance(100);
  }
  expect(times).toEqual([0, 100, 300, 700, 1500, 2500, 3500]);
  expect(news[0]).toEqual(waiting(/does not answer: connect ECONNREFUSED/));
  end.abort();
  await clock.advance(5000);
  expect(asked).toHaveLength(times.length);
});

test('the waits for a deleted Node end', async () => {
  const news = want(105);
  watch.close();
  await asked[0]?.reply({ slicesVersion: 104 });
  expect(news).toEqual([{ kind: 'deleted' }]);
  expect(asked).toHaveLength(1);
});

test('after a pause without drains nothing is taken for known', async () => {
  want(105);
  await asked[0]?.reply({ slicesVersion: 200 });
  want(110);
  expect(asked[1]?.question.after).toBe(110);
});
