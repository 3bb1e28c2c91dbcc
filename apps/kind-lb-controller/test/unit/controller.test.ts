import { fixedCredentials, newApiClient, defaultTls } from '@switchyard/core/kubernetes';
import { millis, noopLogger, systemClock, type Logger } from '@switchyard/core';
import {
  type ApiClient,
  apiResources,
  type ApiServer,
  createApiClient,
  type Service,
  startApiServer,
} from '@switchyard/lab';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Controller } from '../../src/controller/controller.ts';
import { healthProfile } from '../../src/health-profile/health-profiles.ts';
import { rawNode, rawService, type RawServiceSpec } from '../../src/testing/builders.ts';
import { sharedAddresses } from '../../src/testing/example-cluster.ts';
import { MemoryRuntime } from '../../src/testing/memory-runtime.ts';
import { watchCluster } from '../../src/cluster/watch-cluster.ts';
import { newStatusWriter } from '../../src/controller/write-status.ts';

// The lab's API server over loopback HTTP, real reflectors and the real writer; only HAProxy is played.
let stack: AsyncDisposableStack;
let server: ApiServer;
let api: ApiClient;
let runtime: MemoryRuntime;
let warnings: string[];
let stop: AbortController;
const signal = AbortSignal.timeout(60_000);

beforeEach(async () => {
  stack = new AsyncDisposableStack();
  server = stack.use(await startApiServer());
  const { url } = await server.listen({ host: '127.0.0.1', port: 0 });
  api = stack.use(createApiClient({ url }));
  runtime = new MemoryRuntime(sharedAddresses);
  warnings = [];
  stop = new AbortController();
  const log: Logger = { ...noopLogger, warn: (_, fields) => void warnings.push(`${fields?.['problem']}`) };
  const connection = { url: new URL(url), tls: defaultTls, credentials: fixedCredentials(undefined) };
  const client = stack.use(newApiClient(connection, { clock: systemClock, userAgent: 'test' }));
  const controller = new Controller({
    source: sharedAddresses,
    profile: healthProfile('cloud-provider-kind'),
    runtime,
    statusWriter: newStatusWriter({ connection, client, clock: systemClock }),
    clock: systemClock,
    log,
  });
  const onChange = controller.observe.bind(controller);
  const tasks = [
    controller.run(stop.signal),
    watchCluster({ client, clock: systemClock, random: () => 0.5, log, onChange }, stop.signal),
  ];
  stack.defer(async () => {
    stop.abort();
    await Promise.allSettled(tasks);
  });
});
afterEach(() => stack.disposeAsync());

const create = (key: string, parts: RawServiceSpec = {}): Promise<Service> => {
  const { metadata, spec } = rawService(key, parts);
  const { clusterIP: _, ...free } = spec ?? {};
  const object = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: metadata?.name, namespace: 'default' },
    spec: free,
  };
  return api.create(apiResources.services, object as unknown as Service, signal);
};
const createNode = (name: string, address: string): Promise<unknown> =>
  api.create(apiResources.nodes, { apiVersion: 'v1', kind: 'Node', ...rawNode(name, [address]) } as never, signal);
const statusOf = async (name: string): Promise<unknown> =>
  (await api.get(apiResources.services, { name }, signal)).status;
const patch = (name: string, body: Readonly<Record<string, unknown>>): Promise<unknown> =>
  api.patch(apiResources.services, { name }, { kind: 'merge', body }, signal);
const configuration = (): string => runtime.configuration.text;

async function eventually(expectation: () => Promise<void> | void): Promise<void> {
  const deadline = systemClock.monotonic() + 8000;
  for (;;) {
    try {
      return await expectation();
    } catch (error) {
      if (systemClock.monotonic() > deadline) throw error;
      await systemClock.sleep(millis(10), signal);
    }
  }
}

const announced = { ingress: [{ ip: '172.18.0.50', ipMode: 'Proxy', ports: [{ port: 80, protocol: 'TCP' }] }] };

describe('a LoadBalancer Service', () => {
  test('gets a frontend, its nodes as servers, and then its status', async () => {
    await createNode('node1', '172.18.0.11');
    await create('default/web');
    await eventually(async () => expect(await statusOf('web')).toMatchObject({ loadBalancer: announced }));
    expect(configuration()).toContain('bind 172.18.0.50:80');
    expect(configuration()).toContain('server node1 172.18.0.11:30080 check port 10256');
    await createNode('node2', '172.18.0.12');
    await eventually(() => expect(configuration()).toContain('server node2 172.18.0.12:30080'));
  });

  test('loses both when it becomes a ClusterIP Service', async () => {
    await create('default/web');
    await eventually(async () => expect(await statusOf('web')).toMatchObject({ loadBalancer: announced }));
    await patch('web', { spec: { type: 'ClusterIP' } });
    await eventually(() => expect(configuration()).not.toContain('frontend'));
    await eventually(async () => expect(JSON.stringify(await statusOf('web'))).not.toContain('172.18.0.50'));
  });

  test('is no longer listened for once it is deleted', async () => {
    await create('default/web');
    await eventually(() => expect(configuration()).toContain('frontend cluster:default:web:80:ipv4'));
    await api.delete(apiResources.services, { name: 'web' }, {}, signal);
    await eventually(() => expect(configuration()).not.toContain('frontend'));
  });

  test('that waits for a finalizer is cleared already', async () => {
    await create('default/web');
    await eventually(async () => expect(await statusOf('web')).toMatchObject({ loadBalancer: announced }));
    await patch('web', { metadata: { finalizers: ['example.com/wait'] } });
    await api.delete(apiResources.services, { name: 'web' }, {}, signal);
    await eventually(async () => expect(await statusOf('web')).toEqual({ loadBalancer: {} }));
    expect(configuration()).not.toContain('frontend');
  });

  test('with a UDP port gets a condition and one warning, however often it changes', async () => {
    const ports = [{ port: 53, nodePort: 30053, protocol: 'UDP' }];
    await create('default/dns', { spec: { ports } });
    await eventually(async () =>
      expect(await statusOf('dns')).toMatchObject({
        conditions: [{ type: 'LoadBalancerPortsError', status: 'True', reason: 'UnsupportedProtocol' }],
      }),
    );
    await patch('dns', { metadata: { labels: { touched: 'yes' } } });
    await create('default/web');
    await eventually(async () => expect(await statusOf('web')).toMatchObject({ loadBalancer: announced }));
    expect(warnings).toEqual(['port 53/UDP is not load-balanced: HAProxy forwards TCP only']);
  });
});

describe('trouble', () => {
  test('conflicts are tried again, from the newer Service, until the write gets through', async () => {
    server.faults.inject({ kind: 'status', status: 409 }, { method: 'PATCH', target: /\/status$/, times: 7 });
    await create('default/web');
    await eventually(async () => expect(await statusOf('web')).toMatchObject({ loadBalancer: announced }));
  });

  test('no status is announced while HAProxy rejects the configuration; it comes once it does not', async () => {
    let isBroken = true;
    let rejections = 0;
    runtime.judge = () => {
      if (!isBroken) return undefined;
      rejections++;
      return 'no';
    };
    await create('default/web');
    await eventually(() => expect(rejections).toBeGreaterThan(1)); // tried again by itself
    expect(await statusOf('web')).toEqual({ loadBalancer: {} });
    isBroken = false;
    await eventually(async () => expect(await statusOf('web')).toMatchObject({ loadBalancer: announced }));
  });
});
