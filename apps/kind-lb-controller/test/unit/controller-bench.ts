import { millis, systemClock } from '@switchyard/core';
import { anonymousConnection, apiResources, type ObjectClient, type Service } from '@switchyard/core/kubernetes';
import { MemoryLogger } from '@switchyard/core/testing';
import { type ApiServer, createApiClient, startApiServer } from '@switchyard/lab';
import { expect } from 'vitest';
import { AddressAllocator } from '../../src/controller/address-allocator.ts';
import { Disturbances } from '../../src/controller/disturbances.ts';
import { serveCluster } from '../../src/controller/serve-cluster.ts';
import { healthProfile } from '../../src/health-profile/health-profiles.ts';
import type { AddressSource } from '../../src/plan/ip-pool.ts';
import { rawNode, rawService, type RawServiceSpec } from '../../src/testing/builders.ts';
import { MemoryRuntime } from '../../src/testing/memory-runtime.ts';

/** An event as people read it: type, reason and note. */
export type EventText = `${'Normal' | 'Warning'} ${string}: ${string}`;

/** A controller that was started. */
export interface RunningController {
  readonly log: MemoryLogger;
  readonly disturbances: Disturbances;
  /** Stops it; with `kill` nothing is given back and nothing is written any more. */
  stop(): Promise<void>;
}

/** Writes as the API client sees them. */
export interface ServiceStatus {
  readonly loadBalancer?: { readonly ingress?: readonly unknown[] };
  readonly conditions?: readonly { readonly type: string; readonly status: string; reason: string; message: string }[];
}

const signal = AbortSignal.timeout(110_000);

/** The lab's API server over loopback HTTP, real reflectors, leases, events and writes; only the load balancers are played. */
export class ControllerBench implements AsyncDisposable {
  readonly server: ApiServer;
  readonly api: ObjectClient;
  readonly url: string;
  /** Load balancers outlive controllers, as containers do. */
  readonly runtime: MemoryRuntime;
  readonly #stack: AsyncDisposableStack;
  #count = 0;

  private constructor(parts: Pick<ControllerBench, 'server' | 'api' | 'url' | 'runtime'>, stack: AsyncDisposableStack) {
    ({ server: this.server, api: this.api, url: this.url, runtime: this.runtime } = parts);
    this.#stack = stack;
  }

  static async start(source: AddressSource): Promise<ControllerBench> {
    const stack = new AsyncDisposableStack();
    const server = stack.use(await startApiServer());
    const { url } = await server.listen({ host: '127.0.0.1', port: 0 });
    const api = stack.use(createApiClient({ url }));
    return new ControllerBench({ server, api, url, runtime: new MemoryRuntime(source) }, stack);
  }

  /** Without a lease, unless there is one to compete for. */
  controller(lease: 'lease' | 'no lease' = 'no lease'): RunningController {
    const stop = new AbortController();
    const log = new MemoryLogger();
    const disturbances = new Disturbances();
    const { runtime } = this;
    const timings = { leaseDuration: 2000, renewDeadline: 1500, retryPeriod: 100 } as never;
    const serving = serveCluster(
      { name: 'kind', connection: anonymousConnection(new URL(this.url)) },
      {
        host: { clock: systemClock, random: () => 0.5, log, identity: `test-${++this.#count}` },
        runtime,
        addresses: new AddressAllocator({ readSource: (asking) => runtime.addressSource(asking), clock: systemClock }),
        disturbances,
        defaults: {
          isFastDrain: false,
          isPublished: false,
          healthProfileOf: (name = 'cloud-provider-kind', changes) => healthProfile(name, changes),
        },
        lease: lease === 'lease' ? { namespace: 'kube-system', name: 'switchyard-lb', timings } : undefined,
      },
      stop.signal,
    ).catch((error: unknown) => {
      if (!stop.signal.aborted) throw error;
    });
    const end = async (): Promise<void> => {
      stop.abort(new Error('the test ends'));
      await serving;
    };
    this.#stack.defer(end);
    return { log, disturbances, stop: end };
  }

  async create(key: string, parts: RawServiceSpec & { readonly annotations?: object } = {}): Promise<Service> {
    const { metadata, spec } = rawService(key, parts);
    const { clusterIP: _, ...free } = spec ?? {};
    // The API server gives each a node port of its own.
    if (parts.spec?.ports === undefined) free.ports = [{ port: 80 }];
    const { name, namespace } = metadata ?? {};
    const { annotations = {} } = parts;
    const object = { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace, annotations }, spec: free };
    return this.api.create(apiResources.services, object as unknown as Service, signal);
  }

  createNode(name: string, address: string, labels: object = {}): Promise<unknown> {
    const { metadata, ...rest } = rawNode(name, [address]);
    const node = { apiVersion: 'v1', kind: 'Node', ...rest, metadata: { ...metadata, labels } };
    return this.api.create(apiResources.nodes, node as never, signal);
  }

  patch(name: string, body: Readonly<Record<string, unknown>>): Promise<unknown> {
    return this.api.patch(apiResources.services, { name }, { kind: 'merge', body }, signal);
  }

  delete(name: string): Promise<unknown> {
    return this.api.delete(apiResources.services, { name }, {}, signal);
  }

  /** Undefined: it is gone. */
  async find(name: string): Promise<Service | undefined> {
    const { items } = await this.api.list(apiResources.services, {}, signal);
    return items.find(({ metadata }) => metadata?.name === name);
  }

  async statusOf(name: string): Promise<ServiceStatus | undefined> {
    return (await this.find(name))?.status as ServiceStatus | undefined;
  }

  /** `True Serving`, for example; undefined while there is none. */
  async readyOf(name: string): Promise<string | undefined> {
    const ready = (await this.statusOf(name))?.conditions?.find(({ type }) => type === 'lb.switchyard.dev/Ready');
    return ready === undefined ? undefined : `${ready.status} ${ready.reason}`;
  }

  /** In the order in which they were made; a repetition is not told apart. */
  async eventsOf(name: string): Promise<readonly EventText[]> {
    return [...(await this.#eventsOf(name))]
      .sort((a, b) => (`${a.eventTime} ${a.metadata.name}` < `${b.eventTime} ${b.metadata.name}` ? -1 : 1))
      .map(({ type, reason, note = '' }): EventText => `${type} ${reason}: ${note}`);
  }

  /** Reasons of its events, in the order in which they were made. */
  async eventReasonsOf(name: string): Promise<readonly string[]> {
    return (await this.eventsOf(name)).map((text) => text.split(/[ :]/)[1] ?? '');
  }

  /** Waits until a Service is served as specified. */
  async served(name: string): Promise<void> {
    await eventually(async () => expect(await this.readyOf(name)).toBe('True Serving'));
  }

  /** Waits until a Service is gone, and with it its load balancer. */
  async gone(name: string): Promise<void> {
    await eventually(async () => {
      expect(await this.find(name)).toBeUndefined();
      expect([...this.runtime.running.values()].map(({ id }) => id.service)).not.toContain(`default/${name}`);
    });
  }

  /** Reasons of those that came more than once. */
  async repeatedEventsOf(name: string): Promise<readonly string[]> {
    return (await this.#eventsOf(name)).filter(({ series }) => series !== undefined).map(({ reason }) => reason);
  }

  async #eventsOf(name: string): Promise<readonly ApiEvent[]> {
    const answer = await fetch(`${this.url}/apis/events.k8s.io/v1/namespaces/default/events`);
    const { items } = (await answer.json()) as { readonly items: readonly ApiEvent[] };
    return items.filter(({ regarding }) => regarding.name === name);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stack.disposeAsync();
  }
}

interface ApiEvent {
  readonly metadata: { readonly name: string };
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly note?: string;
  readonly eventTime: string;
  readonly series?: unknown;
  readonly regarding: { readonly name: string };
}

/** Polls until the expectation holds; after 8 s it throws what the expectation threw. */
export async function eventually(expectation: () => Promise<void> | void): Promise<void> {
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
