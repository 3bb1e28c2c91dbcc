import { ApiServerError, millis } from '@switchyard/core';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type ApiClient, apiResources, createApiClient, type WatchEvent } from './api-client.ts';
import type { Service } from './api-types.ts';
import { type ApiServer, startApiServer } from './apiserver/server.ts';

let server: ApiServer;
let client: ApiClient;
const { services, nodes, deployments } = apiResources;
const signal = AbortSignal.timeout(60_000);
const web: Service = { metadata: { name: 'web' }, spec: { ports: [{ port: 80 }] } };

beforeEach(async () => {
  server = await startApiServer();
  const { url } = await server.listen({ host: '127.0.0.1', port: 0 });
  client = createApiClient({ url, token: 'any' });
});

afterEach(async () => {
  await client[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

/** Collects `count` events as texts: `listed a,b`, `added c`. */
async function take(events: AsyncIterable<WatchEvent<Service>>, count: number): Promise<readonly string[]> {
  const seen: string[] = [];
  for await (const event of events) {
    const names =
      event.kind === 'listed' ? event.items.map((item) => item.metadata.name) : [event.object.metadata.name];
    seen.push(`${event.kind} ${names.join(',')}`.trim());
    if (seen.length === count) return seen;
  }
  return seen;
}

describe('requests', () => {
  test('create, get, list, update, patch, status, delete', async () => {
    const created = await client.create(
      services,
      { ...web, spec: { type: 'LoadBalancer', ports: [{ port: 80 }] } },
      signal,
    );
    expect(await client.get(services, { name: 'web' }, signal)).toEqual(created);
    const labelled = { ...created, metadata: { ...created.metadata, labels: { a: 'b' } } };
    const updated = await client.update(services, labelled, signal);
    const body = { spec: { sessionAffinity: 'ClientIP' } };
    const patched = await client.patch(services, { name: 'web' }, { kind: 'merge', body }, signal);
    expect([updated.metadata.labels, patched.spec?.sessionAffinity]).toEqual([{ a: 'b' }, 'ClientIP']);
    const status = { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } };
    const withStatus = await client.updateStatus(services, { ...patched, status }, signal);
    expect(withStatus.status?.loadBalancer?.ingress).toEqual([{ ip: '192.0.2.1', ipMode: 'VIP' }]);
    const list = await client.list(services, { namespace: 'default', labelSelector: 'a=b' }, signal);
    expect(list.items.map((item) => item.metadata.name)).toEqual(['web']);
    await client.delete(services, { name: 'web' }, {}, signal);
    expect(await client.find(services, { name: 'web' }, signal)).toBeUndefined();
  });

  test('cluster-scoped kinds and the scale subresource', async () => {
    await client.create(nodes, { metadata: { name: 'n1' } }, signal);
    expect((await client.get(nodes, { name: 'n1' }, signal)).kind).toBe('Node');
    const template = { metadata: { labels: { app: 'd' } }, spec: { containers: [{ name: 'c', image: 'x' }] } };
    const spec = { selector: { matchLabels: { app: 'd' } }, template };
    await client.create(deployments, { metadata: { name: 'd' }, spec }, signal);
    const patch = { kind: 'merge', body: { spec: { replicas: 4 } } } as const;
    await client.patch(deployments, { name: 'd', subresource: 'scale' }, patch, signal);
    expect((await client.get(deployments, { name: 'd' }, signal)).spec?.replicas).toBe(4);
  });

  test.each([
    ['an absent object', () => client.get(services, { name: 'nope' }, signal), 'api.not-found', 404, false],
    [
      'a name that is taken',
      async () => {
        await client.create(services, web, signal);
        return client.create(services, web, signal);
      },
      'api.already-exists',
      409,
      true,
    ],
    [
      'an invalid object',
      () => client.create(services, { metadata: { name: 'x' } }, signal),
      'api.invalid',
      422,
      false,
    ],
    [
      'a stale version',
      async () => {
        const old = await client.create(services, web, signal);
        await client.update(services, { ...old, metadata: { ...old.metadata, labels: { a: 'b' } } }, signal);
        return client.update(
          services,
          old.metadata.name === '' ? old : { ...old, spec: { ...old.spec, sessionAffinity: 'ClientIP' } },
          signal,
        );
      },
      'api.conflict',
      409,
      true,
    ],
  ])('%s rejects with code and status', async (_what, action, ...expected) => {
    const [code, status, isRetryable] = expected;
    const error = await action().then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(ApiServerError);
    expect(error).toMatchObject({ code, status, isRetryable });
  });

  test('a reset connection is retryable, an abort rejects with its reason', async () => {
    server.faults.inject({ kind: 'reset' }, { times: 1 });
    await expect(client.list(services, {}, signal)).rejects.toMatchObject({
      code: 'api.unreachable',
      isRetryable: true,
    });
    server.faults.inject({ kind: 'stall' });
    const reason = new Error('enough');
    const aborter = new AbortController();
    const waiting = client.list(services, {}, aborter.signal);
    setTimeout(() => aborter.abort(reason), 20);
    await expect(waiting).rejects.toBe(reason);
  });
});

describe('watch', () => {
  const write = (name: string): Promise<Service> => client.create(services, { ...web, metadata: { name } }, signal);

  test('lists, then follows', async () => {
    await write('a');
    const seen = take(client.watch(services, { namespace: 'default' }, signal), 4);
    await new Promise((resolve) => setTimeout(resolve, 50));
    await write('b');
    await client.patch(services, { name: 'a' }, { kind: 'merge', body: { metadata: { labels: { x: 'y' } } } }, signal);
    await client.delete(services, { name: 'a' }, {}, signal);
    expect(await seen).toEqual(['listed a', 'added b', 'modified a', 'deleted a']);
  });

  test.each(['clean', 'reset'] as const)('resumes after a %s end without losing or repeating', async (how) => {
    const seen = take(client.watch(services, {}, signal), 4);
    await new Promise((resolve) => setTimeout(resolve, 50));
    await write('a');
    await new Promise((resolve) => setTimeout(resolve, 20));
    server.faults.endWatches(how);
    await write('b');
    await write('c');
    expect(await seen).toEqual(['listed', 'added a', 'added b', 'added c']);
  });

  test('lists again when the version is gone', async () => {
    await write('a');
    const seen = take(client.watch(services, {}, signal), 2);
    await new Promise((resolve) => setTimeout(resolve, 50));
    server.faults.endWatches('reset');
    await write('b');
    server.store.compact();
    expect(await seen).toEqual(['listed a', 'listed a,b']);
  });

  test('goes on after errors, and held events come later', async () => {
    server.faults.inject({ kind: 'status', status: 500, body: 'broken' }, { times: 2 });
    server.faults.inject({ kind: 'delay', duration: millis(20) }, { times: 1 });
    const seen = take(client.watch(services, {}, signal), 2);
    await new Promise((resolve) => setTimeout(resolve, 400));
    const held = server.faults.holdWatches();
    await write('a');
    held[Symbol.dispose]();
    expect(await seen).toEqual(['listed', 'added a']);
  });

  test('ends quietly when aborted', async () => {
    const aborter = new AbortController();
    const seen = take(client.watch(services, {}, aborter.signal), 5);
    await new Promise((resolve) => setTimeout(resolve, 50));
    aborter.abort();
    expect(await seen).toEqual(['listed']);
  });
});
