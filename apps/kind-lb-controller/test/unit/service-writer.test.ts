import type { V1Service } from '@kubernetes/client-node';
import { ApiServerError, systemClock } from '@switchyard/core';
import {
  anonymousConnection,
  apiResources,
  type ObjectClient,
  sendJson,
  type Service,
} from '@switchyard/core/kubernetes';
import { type ApiServer, createApiClient, startApiServer } from '@switchyard/lab';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type LoadBalancerService, serviceFromApi } from '../../src/cluster/cluster-objects.ts';
import { cleanupFinalizer, newServiceWriter, type ServiceWriter } from '../../src/controller/service-writer.ts';
import type { DesiredStatus } from '../../src/controller/service-status.ts';

let stack: AsyncDisposableStack;
let server: ApiServer;
let api: ObjectClient;
let writer: ServiceWriter;
const signal = AbortSignal.timeout(60_000);
const desired: DesiredStatus = { ingress: [{ ip: '172.18.0.50', ipMode: 'Proxy' }], conditions: [] };
const web = { name: 'web' };

beforeEach(async () => {
  stack = new AsyncDisposableStack();
  server = stack.use(await startApiServer());
  const { url } = await server.listen({ host: '127.0.0.1', port: 0 });
  api = stack.use(createApiClient({ url }));
  const connection = anonymousConnection(new URL(url));
  const send = sendJson.bind(undefined, { connection, clock: systemClock, userAgent: 'test' });
  writer = newServiceWriter({ send, clock: systemClock });
});
afterEach(() => stack.disposeAsync());

const createWeb = async (): Promise<LoadBalancerService> => {
  const spec = { type: 'LoadBalancer', ports: [{ port: 80 }] };
  const object = { apiVersion: 'v1', kind: 'Service', metadata: web, spec };
  const created = await api.create(apiResources.services, object as unknown as Service, signal);
  return serviceFromApi(created as unknown as V1Service)!;
};
const current = async (): Promise<LoadBalancerService> =>
  serviceFromApi((await api.get(apiResources.services, web, signal)) as unknown as V1Service)!;
const patch = (body: Readonly<Record<string, unknown>>): Promise<unknown> =>
  api.patch(apiResources.services, web, { kind: 'merge', body }, signal);

describe('a status', () => {
  test('based on an old version is made again, and concurrent writes of others stay', async () => {
    const old = await createWeb();
    const condition = {
      type: 'Other',
      status: 'True',
      reason: 'X',
      message: 'm',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    };
    const body = { status: { conditions: [condition] } };
    await api.patch(apiResources.services, { ...web, subresource: 'status' }, { kind: 'merge', body }, signal);
    const ports = { type: 'LoadBalancerPortsError', status: 'True', reason: 'PortConflict', message: 'why' } as const;
    const write = await writer.writeStatus(old, { ...desired, conditions: [ports] }, signal);
    expect(write.status).toBe('written');
    const { status } = await api.get(apiResources.services, web, signal);
    expect(status).toMatchObject({ loadBalancer: { ingress: desired.ingress }, conditions: [condition, ports] });
  });

  test('that says so already is not written', async () => {
    await writer.writeStatus(await createWeb(), desired, signal);
    expect(await writer.writeStatus(await current(), desired, signal)).toMatchObject({ status: 'unchanged' });
  });

  test('is not needed by a Service that has gone, nor by another one of its name', async () => {
    const old = await createWeb();
    await api.delete(apiResources.services, web, {}, signal);
    expect(await writer.writeStatus(old, desired, signal)).toEqual({ status: 'gone' });
    await createWeb();
    expect(await writer.writeStatus(old, desired, signal)).toEqual({ status: 'gone' });
  });
});

describe('the finalizer', () => {
  test('comes and goes, and those of others stay', async () => {
    const created = await createWeb();
    await patch({ metadata: { finalizers: ['example.com/wait'] } });
    expect(await writer.addFinalizer(created, signal)).toMatchObject({
      status: 'written',
      service: { finalizers: ['example.com/wait', cleanupFinalizer] },
    });
    expect(await writer.addFinalizer(await current(), signal)).toMatchObject({ status: 'unchanged' });
    await writer.removeFinalizer(await current(), signal);
    expect((await current()).finalizers).toEqual(['example.com/wait']);
    await patch({ metadata: { finalizers: null } });
    await writer.addFinalizer(await current(), signal);
    await writer.removeFinalizer(await current(), signal);
    expect((await current()).finalizers).toEqual([]);
  });

  test('does not come to a Service that began to be deleted meanwhile', async () => {
    const seen = await createWeb();
    await patch({ metadata: { finalizers: ['example.com/wait'] } });
    await api.delete(apiResources.services, web, {}, signal);
    expect(await writer.addFinalizer(seen, signal)).toEqual({ status: 'outdated' });
  });

  test('lets a Service go that waited for it', async () => {
    await writer.addFinalizer(await createWeb(), signal);
    await api.delete(apiResources.services, web, {}, signal);
    await writer.removeFinalizer(await current(), signal);
    const { items } = await api.list(apiResources.services, {}, signal);
    expect(items).toEqual([]);
  });
});

describe('an API server', () => {
  test.each([
    { title: 'with conflicts without end', status: 409, message: /5 times someone else changed the Service first/ },
    { title: 'that forbids it', status: 403, message: /answered 403: .*grant "get" and "patch" on services/ },
  ])('$title is an error that says what to do', async ({ status, message }) => {
    const old = await createWeb();
    server.faults.inject({ kind: 'status', status }, { method: 'PATCH' });
    const written = writer.writeStatus(old, desired, signal);
    await expect(written).rejects.toThrow(ApiServerError);
    await expect(written).rejects.toThrow(message);
  });

  test('that does not answer is an error that can be retried', async () => {
    const old = await createWeb();
    server.faults.inject({ kind: 'reset' }, { method: 'PATCH' });
    await expect(writer.addFinalizer(old, signal)).rejects.toMatchObject({
      code: 'api.unreachable',
      isRetryable: true,
    });
  });
});
