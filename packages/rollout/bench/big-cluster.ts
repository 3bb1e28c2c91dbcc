import { apiResources, type EndpointSlice, type ObjectClient } from '@switchyard/core/kubernetes';
import { podPort } from './bench-lab.ts';

/** Endpoints of each filler Service, if not said otherwise. Their addresses lead nowhere. */
export const endpointsPerService = 10;

/** A group of filler Services. */
export interface Fillers {
  readonly services: number;
  /** Number of endpoints of each Service, in one EndpointSlice. Default: `endpointsPerService`. */
  readonly endpoints?: number;
  /** All Services have the same endpoints. Default: false. */
  readonly isShared?: boolean;
}

/** Creates filler Services, a few requests at a time. */
export async function createFillers(api: ObjectClient, fillers: Fillers, signal: AbortSignal): Promise<void> {
  await inParallel(fillers.services, (index) => createFiller(api, index, fillers, signal));
}

/** Creates one Service of a group: `filler-<index>`. */
export async function createFiller(
  api: ObjectClient,
  index: number,
  { endpoints = endpointsPerService, isShared = false }: Omit<Fillers, 'services'>,
  signal: AbortSignal,
): Promise<void> {
  const first = isShared ? 0 : index * endpoints;
  const addresses = Array.from({ length: endpoints }, (_, at) => fillerAddress(first + at));
  await createService(api, `filler-${index}`, addresses, signal);
}

/** Calls `work` for 0 to `count` - 1, a few at a time. */
export async function inParallel(count: number, work: (index: number) => Promise<void>): Promise<void> {
  const inFlight = 16;
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) await work(index);
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
}

/** One of 10.128.0.0/9, outside the lab's own networks. */
export function fillerAddress(index: number): string {
  return `10.${128 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`;
}

/** A Service with one slice; resolves with its cluster IP. */
export async function createService(
  api: ObjectClient,
  name: string,
  addresses: readonly string[],
  signal: AbortSignal,
): Promise<string> {
  const spec = { ports: [{ name: 'http', port: 80, protocol: 'TCP' as const }] };
  const service = { metadata: { name, namespace: 'default' }, spec };
  const created = await api.create(apiResources.services, service, signal);
  await api.create(apiResources.endpointSlices, sliceOf(name, addresses), signal);
  return created.spec?.clusterIP ?? '';
}

/** Writes the endpoints of a Service and resolves when the API server has acknowledged. */
export async function moveService(
  api: ObjectClient,
  name: string,
  address: string,
  signal: AbortSignal,
): Promise<void> {
  await api.update(apiResources.endpointSlices, sliceOf(name, [address]), signal);
}

/** `name`: of the slice; default: the Service's. */
export function sliceOf(service: string, addresses: readonly string[], name: string = service): EndpointSlice {
  return {
    metadata: { name, namespace: 'default', labels: { 'kubernetes.io/service-name': service } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: podPort, protocol: 'TCP' }],
    endpoints: addresses.map((address) => ({
      addresses: [address],
      conditions: { ready: true, serving: true, terminating: false },
      nodeName: 'node2',
      zone: 'zone-b',
    })),
  };
}
