import { ConfigError, messageOf } from '@switchyard/core';
import type { DaemonSet, Deployment, Node, Pod, Service } from '@switchyard/core/kubernetes';
import type { ForecastObjects } from '@switchyard/loss/workload';
import type { Kubectl } from '../access/kubectl.ts';
import { selects } from '../access/selects.ts';
import { detectProxy, type ProxyObjects } from './detect-proxy.ts';
import { type ProxyDelay, readDelay } from './proxy-delay.ts';

/** Everything that a check reads from a cluster. */
export interface RolloutObjects extends ForecastObjects, ProxyObjects {
  readonly namespace: string;
  /** Whether the drain gate runs; undefined if it cannot be read. */
  readonly hasGate: boolean | undefined;
  /** Undefined: it was not looked for. */
  readonly delay?: ProxyDelay | undefined;
}

/** How to read, and what for. */
export interface RolloutQuery {
  readonly deployment: string;
  /** Undefined: that of the user's context. */
  readonly namespace: string | undefined;
  readonly kubectl: Kubectl;
  /** Whether the delay of kube-proxy is wanted. */
  readonly measuresDelay: boolean;
  readonly warn: (text: string) => void;
}

/** Reads with `kubectl get`, and kube-proxy's metrics with `kubectl port-forward`. Rejects with `HostError` that has kubectl's words, and with `ConfigError` if no Service selects the pods. */
export async function readRollout(query: RolloutQuery, signal: AbortSignal): Promise<RolloutObjects> {
  const { kubectl, deployment: name } = query;
  const get = async <T>(...args: readonly string[]): Promise<T> =>
    JSON.parse(await kubectl.run(['get', ...args, '--output=json'], signal)) as T; // the arguments say what it is
  const list = async <T>(...args: readonly string[]): Promise<readonly T[]> =>
    (await get<{ readonly items: readonly T[] }>(...args)).items;
  const inNamespace = query.namespace === undefined ? [] : [`--namespace=${query.namespace}`];
  const deployment = await get<Deployment>(`deployments.apps/${name}`, ...inNamespace);
  const namespace = deployment.metadata.namespace ?? 'default';
  const selector = podSelector(deployment);
  const [services, pods, nodes, system] = await Promise.all([
    list<Service>('services', `--namespace=${namespace}`),
    selector === '' ? [] : list<Pod>('pods', `--namespace=${namespace}`, `--selector=${selector}`),
    list<Node>('nodes'),
    readSystem({ ...query, list }),
  ]);
  const labels = deployment.spec?.template.metadata?.labels ?? {};
  const selecting = services.filter((service) => selects(service, labels));
  if (selecting.length === 0) {
    throw new ConfigError(
      'rollout.service',
      `no Service in ${namespace} selects the pods of deployment/${name}: no proxy leads to them`,
    );
  }
  const { timing, isAssumed } = detectProxy({ ...system, nodes });
  const isKnown = !isAssumed && timing.startsWith('kube-proxy');
  const delay = query.measuresDelay && isKnown ? await readDelay(kubectl, signal) : undefined;
  return { namespace, deployment, services: selecting, pods, nodes, ...system, delay };
}

/** Labels of a Deployment's pods, as kubectl takes them. Empty: it selects by expressions only. */
export function podSelector({ spec }: Deployment): string {
  return Object.entries(spec?.selector.matchLabels ?? {})
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
}

type SystemObjects = Pick<RolloutObjects, 'daemonSets' | 'kubeProxyReplacement' | 'hasGate'>;

interface SystemReader extends RolloutQuery {
  readonly list: <T>(...args: readonly string[]) => Promise<readonly T[]>;
}

/** A user without rights in kube-system names the proxy. */
async function readSystem({ list, warn }: SystemReader): Promise<SystemObjects> {
  try {
    const [daemonSets, deployments] = await Promise.all([
      list<DaemonSet>('daemonsets.apps', '--namespace=kube-system'),
      list<Deployment>('deployments.apps', '--namespace=kube-system'),
    ]);
    const hasCilium = daemonSets.some(({ metadata }) => metadata.name === 'cilium');
    const configs = hasCilium
      ? await list<ConfigMap>('configmaps', '--namespace=kube-system', '--field-selector=metadata.name=cilium-config')
      : [];
    return {
      daemonSets,
      kubeProxyReplacement: configs[0]?.data?.['kube-proxy-replacement'],
      hasGate: deployments.some(({ metadata }) => metadata.name === 'switchyard-drain-gate'),
    };
  } catch (error) {
    warn(`cannot look for the proxy: ${messageOf(error)}`);
    return { daemonSets: undefined, kubeProxyReplacement: undefined, hasGate: undefined };
  }
}

interface ConfigMap {
  readonly data?: Readonly<Record<string, string>>;
}
