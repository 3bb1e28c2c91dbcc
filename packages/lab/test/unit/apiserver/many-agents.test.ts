import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { ClusterState, nodeName } from '@switchyard/core';
import { expect, test } from 'vitest';
import { services } from '../../../src/apiserver/resources/services.ts';
import { type Harness, sourceAt, startHarness } from './harness.ts';

// The agents of a whole cluster lose their API server, and its history is compacted meanwhile: all of them have to list.

/** AGENTS sets another number, such as 2,000. Each agent has four connections. */
const { AGENTS = '50' } = process.env;
const agents = Number(AGENTS);
const resources = 4;

/** A request, and milliseconds since the API server was back. */
interface Asked {
  readonly at: number;
  readonly path: string;
  readonly query: URLSearchParams;
}

/** All requests for objects from now on. */
function recordRequests(): Disposable & { readonly asked: Asked[] } {
  const asked: Asked[] = [];
  const start = performance.now();
  const note = (message: unknown): void => {
    const { url } = (message as { readonly request: IncomingMessage }).request; // documented by Node
    const { pathname, searchParams } = new URL(url ?? '', 'http://server');
    asked.push({ at: performance.now() - start, path: pathname, query: searchParams });
  };
  subscribe('http.server.request.start', note);
  return { asked, [Symbol.dispose]: () => unsubscribe('http.server.request.start', note) };
}

/** All objects, by a watch that lists first or by a list. */
function isList({ query }: Asked): boolean {
  return query.get('watch') !== 'true' || query.get('sendInitialEvents') === 'true';
}

/** API servers answer a list from etcd without a version (before 1.31), for an exact one, and by pages. */
function readsEtcd({ query }: Asked): boolean {
  const fromCache = query.get('resourceVersionMatch') === 'NotOlderThan' && query.has('resourceVersion');
  return query.get('watch') !== 'true' && (!fromCache || query.has('limit') || query.has('continue'));
}

/** Follows the API as one node's agent; `numbers` has its number of Services, once in sync. */
async function runAgent(index: number, { url }: Harness, numbers: number[], signal: AbortSignal): Promise<void> {
  const name = nodeName(`node-${index}`);
  const source = sourceAt(url, { kind: 'one', name });
  const state = new ClusterState({ nodeName: name });
  for await (const batch of source.batches(signal)) {
    state.apply(batch);
    if (state.isInSync) numbers[index] = state.services.size;
  }
}

test.each([
  ['that lists by watches', false],
  ['that only lists, before Kubernetes 1.32', true],
])(`${agents} agents after a compaction of a server %s: none reads etcd, each lists once`, async (_, isOld) => {
  await using api = await startHarness();
  const { faults, store } = api.server;
  if (isOld) faults.inject({ kind: 'status', status: 422 }, { target: /sendInitialEvents/ });
  await api.service('before');
  const stop = new AbortController();
  const numbers = Array.from({ length: agents }, () => 0);
  const until = async (services: number): Promise<void> => {
    while (numbers.some((number) => number !== services)) await sleep(10);
  };
  const running = numbers.map((_, index) => runAgent(index, api, numbers, stop.signal));
  await until(1);

  const cut = faults.stop();
  const spec = { selector: { app: 'after' }, ports: [{ port: 80 }] };
  api.server.registry.create(services, 'default', { metadata: { name: 'after' }, spec });
  store.compact();
  using requests = recordRequests();
  cut[Symbol.dispose]();
  await until(2);
  await sleep(1_500); // a second list would come by then
  stop.abort();
  await Promise.all(running);

  const lists = requests.asked.filter(isList);
  expect(lists.filter(readsEtcd)).toEqual([]);
  const perResource = Object.groupBy(lists, ({ path }) => path);
  expect(Object.values(perResource).map((ofOne) => ofOne?.length)).toEqual(
    Array.from({ length: resources }, () => agents),
  );
  const times = lists.map(({ at }) => at);
  expect(Math.max(...times) - Math.min(...times), 'the lists are spread over a second').toBeGreaterThan(500);
});
