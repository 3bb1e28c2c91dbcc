import {
  type ApiObject,
  type ApiResource,
  apiResources,
  type ObjectClient,
  type Service,
} from '@switchyard/core/kubernetes';
import { expect } from 'vitest';
import { nodePorts } from './e2e-environment.ts';

const signal = new AbortController().signal;

/** A LoadBalancer Service on the ports at which nodes answer; `changes` replace parts of its spec. */
export function localService(name: string, changes: Partial<NonNullable<Service['spec']>> = {}): Service {
  return {
    metadata: { name, namespace: 'default' },
    spec: {
      type: 'LoadBalancer',
      externalTrafficPolicy: 'Local',
      healthCheckNodePort: nodePorts.health,
      ipFamilyPolicy: 'SingleStack',
      selector: { app: name },
      ports: [{ name: 'http', port: 80, targetPort: 8080, nodePort: nodePorts.http }],
      ...changes,
    },
  };
}

/** One whose NodePorts the API server chooses, checked by the proxies' own health: any number of them fit on the nodes. */
export function plainService(name: string): Service {
  return {
    metadata: { name, namespace: 'default' },
    spec: { type: 'LoadBalancer', selector: { app: name }, ports: [{ port: 80, targetPort: 8080 }] },
  };
}

/** Creates it and returns its address when its status has one. */
export async function createServed(api: ObjectClient, service: Service): Promise<string> {
  await api.create(apiResources.services, service, signal);
  return addressOf(api, service.metadata.name ?? '');
}

export function addressesIn(service: Service): readonly string[] {
  return (service.status?.loadBalancer?.ingress ?? []).flatMap(({ ip }) => ip ?? []);
}

/** Waits for the address of a Service's status. */
export async function addressOf(api: ObjectClient, name: string): Promise<string> {
  let address: string | undefined;
  const ask = async (): Promise<string | undefined> => {
    [address] = addressesIn(await read(api, name));
    return address;
  };
  await expect.poll(ask, { interval: 100 }).toBeDefined();
  return address ?? '';
}

export function read(api: ObjectClient, name: string): Promise<Service> {
  return api.get(apiResources.services, { namespace: 'default', name }, signal);
}

/** A merge patch of a Service. */
export async function patch(api: ObjectClient, name: string, body: Readonly<Record<string, unknown>>): Promise<void> {
  await api.patch(apiResources.services, { namespace: 'default', name }, { kind: 'merge', body }, signal);
}

/** Requests its deletion. */
export async function removeService(api: ObjectClient, name: string): Promise<void> {
  await api.delete(apiResources.services, { namespace: 'default', name }, {}, signal);
}

/** Requests its deletion and waits for it, which requires the removal of its finalizer. */
export async function deleteService(api: ObjectClient, name: string): Promise<void> {
  await removeService(api, name);
  await expect.poll(() => exists(api, name), { interval: 100 }).toBe(false);
}

async function exists(api: ObjectClient, name: string): Promise<boolean> {
  const { items } = await api.list(apiResources.services, { namespace: 'default' }, signal);
  return items.some((service) => service.metadata.name === name);
}

/** The condition `lb.switchyard.dev/Ready`, on one line. */
export async function readiness(api: ObjectClient, name: string): Promise<string> {
  const { status } = await read(api, name);
  const ready = status?.conditions?.find(({ type }) => type === 'lb.switchyard.dev/Ready');
  return ready === undefined ? 'no condition' : `${ready.status} ${ready.reason}: ${ready.message}`;
}

interface EventObject extends ApiObject {
  readonly type?: string;
  readonly reason?: string;
  readonly note?: string;
  readonly regarding?: { readonly name?: string };
}

const events: ApiResource<EventObject> = {
  group: 'events.k8s.io',
  version: 'v1',
  plural: 'events',
  kind: 'Event',
  isNamespaced: true,
};

/** What `kubectl describe service` would list, in order of time: type, reason, message. */
export async function eventsOf(api: ObjectClient, name: string): Promise<readonly string[]> {
  const { items } = await api.list(events, { namespace: 'default' }, signal);
  return items
    .filter(({ regarding }) => regarding?.name === name)
    .map(({ type, reason, note }) => `${type} ${reason}: ${note}`);
}
