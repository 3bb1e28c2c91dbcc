import { ApiServerError, millis } from '@switchyard/core';
import { apiResources, type ObjectClient, type ObjectEvent, type Service } from '@switchyard/core/kubernetes';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createApiClient } from './lab-cluster.ts';
import { services as serviceResource } from './apiserver/resources/services.ts';
import { type ApiServer, startApiServer } from './apiserver/server.ts';

let server: ApiServer;
let client: ObjectClient;
const { services, nodes, deployments } = apiResources;
const signal = AbortSignal.timeout(60_000);
const web: Service = { metadata: { name: 'web' }, spec: { ports: [{ port: 80 }] } };

beforeEach(async () => {
  server = await startApiServer();
  const { url } = await server.listen({ host: '127.0.0.1', port: 0 });
  client = createApiClient({ url });
});

afterEach(async () => {
  await client[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

/** Follows a watch in the background: `seen` holds texts such as `listed a,b`, `changed c`. */
function follow(events: AsyncIterable<ObjectEvent<Service>>): {
  readonly seen: string[];
  readonly until: (count: number) => Promise<void>;
  readonly ended: Promise<void>;
} {
  const seen: string[] = [];
  const ended = (async () => {
    for await (const event of events) {
      const objects = event.kind === 'listed' ? event.items : [event.object];
      seen.push(`${event.kind} ${objects.map((object) => object.metadata.name).join(',')}`.trim());
    }
  })();
  const until = async (count: number): Promise<void> => {
    for (let round = 0; seen.length < count; round++) {
      if (round > 1_500) throw new Error(`waited for ${count} events, got ${seen.join('; ')}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  return { seen, until, ended };
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
    ['an absent object', () => client.get(services, { name: 'nope' }, signal), 'api.404', 404, false],
    [
      'a name that is taken',
      async () => {
        await client.create(services, web, signal);
        return client.create(services, web, signal);
      },
      'api.409',
      409,
      true,
    ],
    ['an invalid object', () => client.create(services, { metadata: { name: 'x' } }, signal), 'api.422', 422, false],
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
      'api.409',
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
  let aborter: AbortController;

  beforeEach(() => {
    aborter = new AbortController();
  });

  afterEach(() => aborter.abort());

  const start = (): ReturnType<typeof follow> => follow(client.watch(services, {}, aborter.signal));

  test('lists, then follows', async () => {
    await write('a');
    const { seen, until } = start();
    await until(1);
    await write('b');
    await client.patch(services, { name: 'a' }, { kind: 'merge', body: { metadata: { labels: { x: 'y' } } } }, signal);
    await client.delete(services, { name: 'a' }, {}, signal);
    await until(4);
    expect(seen).toEqual(['listed a', 'changed b', 'changed a', 'deleted a']);
  });

  test.each(['clean', 'reset'] as const)('resumes after a %s end without losing or repeating', async (how) => {
    const { seen, until } = start();
    await until(1);
    await write('a');
    await until(2);
    server.faults.endWatches(how);
    await write('b');
    await write('c');
    await until(4);
    expect(seen).toEqual(['listed', 'changed a', 'changed b', 'changed c']);
  });

  test('lists again when the version is gone', async () => {
    await write('a');
    const { seen, until } = start();
    await until(1);
    const stopped = server.faults.stop();
    const options = { isDryRun: false, fieldValidation: 'Strict' } as const;
    server.registry.create(
      serviceResource,
      'default',
      { metadata: { name: 'b' }, spec: { ports: [{ port: 80 }] } },
      options,
    );
    server.store.compact();
    stopped[Symbol.dispose]();
    await until(2);
    expect(seen).toEqual(['listed a', 'listed a,b']);
  });

  test('goes on after errors, and held events come later', async () => {
    server.faults.inject({ kind: 'status', status: 500, body: 'broken' }, { times: 2 });
    server.faults.inject({ kind: 'delay', duration: millis(20) }, { times: 1 });
    const { seen, until } = start();
    await until(1);
    const held = server.faults.holdWatches();
    await write('a');
    held[Symbol.dispose]();
    await until(2);
    expect(seen).toEqual(['listed', 'changed a']);
  });

  test('ends quietly when aborted', async () => {
    const { seen, until, ended } = start();
    await until(1);
    aborter.abort();
    await ended;
    expect(seen).toEqual(['listed']);
  });
});
