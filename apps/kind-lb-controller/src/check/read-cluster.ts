import { text } from 'node:stream/consumers';
import { ApiServerError, ConfigError } from '@switchyard/core';
import type { ApiClient, Deployment, Node, Pod, Service } from '@switchyard/core/kubernetes';
import type { WorkloadObjects } from '@switchyard/loss/workload';
import type { CheckConfig } from './check-flags.ts';

/** The API objects that a prediction uses. */
export interface ClusterObjects extends WorkloadObjects {
  /** Those whose pods the Service selects, or the one that was named. */
  readonly deployments: readonly Deployment[];
}

/** Reads it. Rejects with `ConfigError` where the Service or the Deployment is not there, with `ApiFailure` for other trouble. */
export async function readCluster(
  client: ApiClient,
  { namespace, service: name, deployment }: CheckConfig,
  signal: AbortSignal,
): Promise<ClusterObjects> {
  const core = `/api/v1/namespaces/${encodeURIComponent(namespace)}`;
  const apps = `/apis/apps/v1/namespaces/${encodeURIComponent(namespace)}/deployments`;
  const service = await readOne<Service>(client, `${core}/services`, { kind: 'Service', namespace, name }, signal);
  const selector = service.spec?.selector ?? {};
  const isSelecting = Object.keys(selector).length > 0;
  const [deployments, pods, nodes] = await Promise.all([
    deployment === undefined
      ? isSelecting
        ? readAll<Deployment>(client, apps, {}, signal)
        : []
      : [await readOne<Deployment>(client, apps, { kind: 'Deployment', namespace, name: deployment }, signal)],
    isSelecting ? readAll<Pod>(client, `${core}/pods`, selector, signal) : [],
    readAll<Node>(client, '/api/v1/nodes', {}, signal),
  ]);
  const isSelected = ({ spec }: Deployment): boolean => isSubset(selector, spec?.template.metadata?.labels ?? {});
  return { service, deployments: deployment === undefined ? deployments.filter(isSelected) : deployments, pods, nodes };
}

function isSubset(selector: Readonly<Record<string, string>>, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(selector).every(([key, value]) => labels[key] === value);
}

interface ObjectName {
  readonly kind: 'Service' | 'Deployment';
  readonly namespace: string;
  readonly name: string;
}

async function readOne<T>(
  client: ApiClient,
  collection: string,
  { kind, namespace, name }: ObjectName,
  signal: AbortSignal,
): Promise<T> {
  try {
    return await readJson<T>(client, `${collection}/${encodeURIComponent(name)}`, new URLSearchParams(), signal);
  } catch (error) {
    if (!(error instanceof ApiServerError) || error.status !== 404) throw error;
    throw new ConfigError('check.not-found', `there is no ${kind} ${namespace}/${name}; is --namespace right?`, {
      cause: error,
    });
  }
}

async function readAll<T>(
  client: ApiClient,
  collection: string,
  labels: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<readonly T[]> {
  const query = new URLSearchParams();
  const selector = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  if (selector.length > 0) query.set('labelSelector', selector.join(','));
  const { items } = await readJson<{ readonly items?: readonly T[] | null }>(client, collection, query, signal);
  return items ?? [];
}

function readJson<T>(client: ApiClient, path: string, query: URLSearchParams, signal: AbortSignal): Promise<T> {
  return client.get(
    { path, query },
    async (body) => JSON.parse(await text(body.chunks())) as T, // the path says what it is
    signal,
  );
}
