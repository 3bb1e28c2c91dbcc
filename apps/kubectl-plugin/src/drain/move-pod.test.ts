import { createServer } from 'node:http';
import { once } from 'node:events';
import { ManualClock } from '@switchyard/core/testing';
import { expect, onTestFinished, test } from 'vitest';
import type { Pod } from '@switchyard/core/kubernetes';
import type { Kubectl } from '../access/kubectl.ts';
import type { Move } from './drain-plan.ts';
import { movePod } from './move-pod.ts';

const { signal } = new AbortController();

function pod(name: string, ip: string, isReady = true): Pod {
  return {
    metadata: {
      name,
      namespace: 'shop',
      labels: { app: 'web' },
      ownerReferences: [{ apiVersion: 'apps/v1', uid: 'u', kind: 'ReplicaSet', name: 'web-abc', controller: true }],
    },
    spec: { containers: [{ name: 'web' }] },
    status: { podIPs: [{ ip }], conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }] },
  };
}

const old = pod('web-abc-1', '10.244.1.5');
const move: Move = { pod: old, replicaSet: 'web-abc', isTaken: false, hasHook: false, serviceLabels: ['app'] };

interface Cluster {
  /** Pods at each look; the last look repeats. */
  readonly looks: readonly (readonly Pod[])[];
  /** Paths of the gate that answer: not safe. */
  readonly unsafe?: readonly string[];
}

/** Runs a move against a cluster, and returns what it did, in order. */
async function run({ looks, unsafe = [] }: Cluster, more: Partial<Move> = {}) {
  const steps: string[] = [];
  const server = createServer(({ url = '' }, response) => {
    const [path = ''] = url.split('?');
    steps.push(`gate ${path} ${new URLSearchParams(url.split('?')[1]).get('pod')}`);
    const isSafe = !unsafe.includes(path);
    response.statusCode = isSafe ? 200 : 503;
    response.end(
      JSON.stringify({
        isSafe,
        waited: 40,
        nodes: { total: 3, applied: 3 },
        open: { TCP: 0 },
        reasons: ['x is behind'],
      }),
    );
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const left = [...looks];
  const kubectl: Kubectl = {
    run: async (args) => {
      if (args[0] !== 'get') {
        steps.push(args.join(' '));
        return '';
      }
      if (args[1] === 'replicaset') return JSON.stringify({ spec: { replicas: 2 } });
      const items = left.length > 1 ? left.shift() : left[0];
      return JSON.stringify({ items });
    },
    lines: async function* () {
      yield* [];
      throw new Error('not used');
    },
    start: () => Promise.reject(new Error('not used')),
  };
  const clock = new ManualClock();
  const gate = {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    [Symbol.dispose]: () => undefined,
  };
  const moving = movePod({ ...move, ...more }, { kubectl, clock, gate, limit: 3 }, signal).then(
    (moved) => ({ moved, error: undefined }),
    (error: unknown) => ({ moved: undefined, error: String(error) }),
  );
  const done = new AbortController();
  void moving.then(() => done.abort());
  while (!done.signal.aborted) {
    await clock.advance(200);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  return { steps, ...(await moving) };
}

const one = pod('web-abc-2', '10.244.2.5');
const fresh = pod('web-abc-3', '10.244.3.5');
const take =
  'patch pod web-abc-1 --namespace=shop --type=merge --patch={"metadata":{"labels":{"pod-template-hash":null,"switchyard.dev/moved-from":"web-abc"}}}';
const leave = 'patch pod web-abc-1 --namespace=shop --type=merge --patch={"metadata":{"labels":{"app":null}}}';
const remove = 'delete pod web-abc-1 --namespace=shop --wait=false';

test('a pod leaves its Services only when its replacement is ready on all nodes, and is deleted after the gate', async () => {
  const unready = pod('web-abc-3', '10.244.3.5', false);
  const { steps, moved } = await run({
    looks: [
      [old, one],
      [old, one],
      [old, one, unready],
      [old, one, fresh],
    ],
  });
  expect(steps).toEqual([
    take,
    'gate /ready 10.244.2.5',
    'gate /ready 10.244.3.5',
    leave,
    'gate /drain 10.244.1.5',
    remove,
  ]);
  expect(moved).toEqual({
    pod: 'shop/web-abc-1',
    by: ['shop/web-abc-3'],
    replaced: 400,
    gate: expect.objectContaining({ waited: 40 }) as unknown,
  });
});

test('the hook of a pod waits at the gate itself', async () => {
  const { steps } = await run({ looks: [[old, one, fresh]] }, { hasHook: true });
  expect(steps).toEqual([take, 'gate /ready 10.244.2.5', 'gate /ready 10.244.3.5', remove]);
});

test('a move that was interrupted is not begun again', async () => {
  const { steps } = await run({ looks: [[old, one, fresh]] }, { isTaken: true });
  expect(steps[0]).toBe('gate /ready 10.244.2.5');
});

test.each<readonly [string, Cluster, RegExp, string]>([
  [
    'no replacement is ready',
    { looks: [[old, one]] },
    /pod shop\/web-abc-1 goes on: 1 of 2 pods of ReplicaSet web-abc are ready after 3 s/,
    take,
  ],
  [
    'a replacement is not known everywhere',
    { looks: [[old, one, fresh]], unsafe: ['/ready'] },
    /goes on: shop\/web-abc-2 in its place is not ready on all nodes: x is behind/,
    'gate /ready 10.244.2.5',
  ],
  [
    'the gate stays closed',
    { looks: [[old, one, fresh]], unsafe: ['/drain'] },
    /goes on: it cannot be stopped yet: x is behind/,
    'gate /drain 10.244.1.5',
  ],
])('the pod is not deleted if %s', async (_, cluster, message, last) => {
  const { steps, error } = await run(cluster);
  expect(error).toMatch(message);
  expect(steps.at(-1)).toBe(last);
});
