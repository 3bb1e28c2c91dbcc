import type { V1Service } from '@kubernetes/client-node';
import { ApiServerError, systemClock } from '@switchyard/core';
import { defaultTls, fixedCredentials, newApiClient } from '@switchyard/core/kubernetes';
import {
  type ApiClient,
  apiResources,
  type ApiServer,
  createApiClient,
  type Service,
  startApiServer,
} from '@switchyard/lab';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type LoadBalancerService, serviceFromApi } from '../../src/cluster/cluster-objects.ts';
import type { DesiredStatus } from '../../src/controller/desired-status.ts';
import { newStatusWriter, type StatusWriter } from '../../src/controller/write-status.ts';

let stack: AsyncDisposableStack;
let server: ApiServer;
let api: ApiClient;
let writer: StatusWriter;
const signal = AbortSignal.timeout(60_000);
const desired: DesiredStatus = { ingress: [{ ip: '172.18.0.50', ipMode: 'Proxy' }], condition: undefined };
const web = { name: 'web' };

beforeEach(async () => {
  stack = new AsyncDisposableStack();
  server = stack.use(await startApiServer());
  const { url } = await server.listen({ host: '127.0.0.1', port: 0 });
  api = stack.use(createApiClient({ url }));
  const connection = { url: new URL(url), tls: defaultTls, credentials: fixedCredentials('Bearer secret') };
  const client = stack.use(newApiClient(connection, { clock: systemClock, userAgent: 'test' }));
  writer = newStatusWriter({ connection, client, clock: systemClock });
});
afterEach(() => stack.disposeAsync());

const createWeb = async (): Promise<LoadBalancerService> => {
  const spec = { type: 'LoadBalancer', ports: [{ port: 80 }] };
  const object = { apiVersion: 'v1', kind: 'Service', metadata: web, spec };
  const created = await api.create(apiResources.services, object as unknown as Service, signal);
  return serviceFromApi(created as unknown as V1Service)!;
};

test('a write based on an old version is made again, and what somebody else wrote meanwhile stays', async () => {
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
  const withCondition: DesiredStatus = { ...desired, condition: { reason: 'PortConflict', message: 'why' } };
  expect(await writer.write(old, withCondition, signal)).toEqual({ status: 'written' });
  const { status } = await api.get(apiResources.services, web, signal);
  expect(status).toMatchObject({
    loadBalancer: { ingress: desired.ingress },
    conditions: [condition, { type: 'LoadBalancerPortsError', status: 'True', reason: 'PortConflict', message: 'why' }],
  });
});

test('a status that says so already is not written', async () => {
  const old = await createWeb();
  await writer.write(old, desired, signal);
  const current = serviceFromApi((await api.get(apiResources.services, web, signal)) as unknown as V1Service)!;
  expect(await writer.write(current, desired, signal)).toEqual({ status: 'unchanged' });
});

test('a Service that has gone needs no status', async () => {
  const old = await createWeb();
  await api.delete(apiResources.services, web, {}, signal);
  expect(await writer.write(old, desired, signal)).toEqual({ status: 'gone' });
});

test.each([
  { title: 'conflicts without end', status: 409, message: /5 times someone else changed the Service first/ },
  { title: 'a missing permission', status: 403, message: /answered 403: .*grant "patch" on services\/status/ },
])('$title end in an error that says what to do', async ({ status, message }) => {
  const old = await createWeb();
  server.faults.inject({ kind: 'status', status }, { method: 'PATCH' });
  const written = writer.write(old, desired, signal);
  await expect(written).rejects.toThrow(ApiServerError);
  await expect(written).rejects.toThrow(message);
});

test('no answer at all is an error that can be retried', async () => {
  const old = await createWeb();
  server.faults.inject({ kind: 'reset' }, { method: 'PATCH' });
  await expect(writer.write(old, desired, signal)).rejects.toMatchObject({
    code: 'api.unreachable',
    isRetryable: true,
  });
});
