import { apiResources, type ApiClient } from '@switchyard/lab';

/** Endpoints of each filler Service. Their addresses lead nowhere. */
export const endpointsPerService = 10;

/** Creates `count` Services with one EndpointSlice of ten endpoints each, a few requests at a time. */
export async function createFillers(api: ApiClient, count: number, signal: AbortSignal): Promise<void> {
  const inFlight = 16;
  let next = 0;
  const work = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) await createFiller(api, index, signal);
  };
  await Promise.all(Array.from({ length: inFlight }, work));
}

async function createFiller(api: ApiClient, index: number, signal: AbortSignal): Promise<void> {
  const name = `filler-${index}`;
  const metadata = { name, namespace: 'default' };
  await api.create(
    apiResources.services,
    { metadata, spec: { ports: [{ name: 'http', port: 80, protocol: 'TCP' }] } },
    signal,
  );
  const endpoints = Array.from({ length: endpointsPerService }, (_, endpoint) => ({
    addresses: [
      `10.245.${(index * endpointsPerService + endpoint) >> 8}.${(index * endpointsPerService + endpoint) & 255}`,
    ],
    conditions: { ready: true, serving: true, terminating: false },
    nodeName: 'node2',
  }));
  await putSlice(api, { name, endpoints }, signal);
}

/** One endpoint of a slice as the API takes it. */
export interface SliceEndpoint {
  readonly addresses: string[];
  readonly conditions: { readonly ready: boolean; readonly serving: boolean; readonly terminating: boolean };
  readonly nodeName: string;
}

async function putSlice(
  api: ApiClient,
  slice: { readonly name: string; readonly endpoints: SliceEndpoint[] },
  signal: AbortSignal,
): Promise<void> {
  await api.create(
    apiResources.endpointSlices,
    {
      metadata: { name: slice.name, namespace: 'default', labels: { 'kubernetes.io/service-name': slice.name } },
      addressType: 'IPv4',
      ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
      endpoints: slice.endpoints,
    },
    signal,
  );
}

/** A Service whose only endpoint is moved by the bench. */
export async function createFlip(api: ApiClient, address: string, signal: AbortSignal): Promise<string> {
  const created = await api.create(
    apiResources.services,
    {
      metadata: { name: 'flip', namespace: 'default' },
      spec: { ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
    },
    signal,
  );
  await putSlice(api, { name: 'flip', endpoints: [flipEndpoint(address)] }, signal);
  return created.spec?.clusterIP ?? '';
}

/** The endpoint of the moved Service. */
export function flipEndpoint(address: string): SliceEndpoint {
  return { addresses: [address], conditions: { ready: true, serving: true, terminating: false }, nodeName: 'node1' };
}
