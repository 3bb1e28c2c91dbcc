import { type Clock, ConfigError, HostError, millis, seconds } from '@switchyard/core';
import { apiResources, type ObjectClient, type Pod } from '@switchyard/core/kubernetes';
import type { ProxyControl } from '../model/test-environment.ts';

/** Where the proxies of a cluster run. */
const namespace = 'kube-system';

/** A label by which pods of a proxy are known: kube-proxy's, and Switchyard's. */
const knownLabels = [
  ['k8s-app', 'kube-proxy'],
  ['app.kubernetes.io/component', 'node-agent'],
] as const;

/** Longest time until a pod has ended, and until its successor is ready. */
const patience = seconds(60);
const lookPause = millis(50);

/** A kubelet sends SIGTERM before SIGKILL in any case; this is its shortest wait, in seconds. */
const shortestGrace = 1;

export interface ClusterProxyPlace {
  readonly api: ObjectClient;
  readonly clock: Clock;
  /** Name of the node under test. */
  readonly node: string;
  /** Waits until packets show that the proxy has everything written. */
  readonly settled: (signal: AbortSignal) => Promise<void>;
}

/**
 * The proxy under test as a pod of a DaemonSet, which starts it again whenever it has ended. Rejects with `ConfigError` if the node has no
 * such pod.
 */
export async function openClusterProxy(place: ClusterProxyPlace, signal: AbortSignal): Promise<ProxyControl> {
  const first = proxyPod(await podsOn(place, signal));
  if (first === undefined) {
    throw new ConfigError(
      'cluster.proxy',
      `node ${place.node} has no pod of kube-proxy or Switchyard that a DaemonSet in ${namespace} made; --disruptive restarts such pods only`,
    );
  }
  const end = (gracePeriodSeconds?: number): Promise<void> => endPod(place, gracePeriodSeconds, signal);
  return {
    kill: () => end(shortestGrace),
    stop: () => end(),
    start: async () => {
      await untilFound(place, 'the DaemonSet to start the proxy again', isRunning, signal);
      return place.clock.monotonic();
    },
    settled: place.settled,
    // They run on all nodes.
    onOtherNodes: () => Promise.resolve({ [Symbol.asyncDispose]: () => Promise.resolve() }),
    ownEnd: () => Promise.resolve(undefined),
  };
}

/** The pod of a Service proxy, owned by a DaemonSet, among the pods of a node; undefined: there is none. */
export function proxyPod(pods: readonly Pod[]): Pod | undefined {
  return pods.find(({ metadata }) => {
    const isOwned = (metadata.ownerReferences ?? []).some(({ kind }) => kind === 'DaemonSet');
    return isOwned && knownLabels.some(([label, value]) => metadata.labels?.[label] === value);
  });
}

async function podsOn({ api, node }: ClusterProxyPlace, signal: AbortSignal): Promise<readonly Pod[]> {
  const select = { namespace, fieldSelector: `spec.nodeName=${node}` };
  return (await api.list(apiResources.pods, select, signal)).items;
}

/** Deletes the proxy's pod, and waits until the kubelet has removed it. */
async function endPod(place: ClusterProxyPlace, gracePeriodSeconds: number | undefined, signal: AbortSignal) {
  const pod = await untilFound(place, 'a pod of the proxy', () => true, signal);
  const { name = '', uid } = pod.metadata;
  const options = gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds };
  await place.api.delete(apiResources.pods, { namespace, name }, options, signal);
  const isGone = (pods: readonly Pod[]): boolean => !pods.some(({ metadata }) => metadata.uid === uid);
  await until(place, `pod ${name} to end`, (pods) => (isGone(pods) ? true : undefined), signal);
}

function isRunning({ metadata, status }: Pod): boolean {
  return metadata.deletionTimestamp === undefined && status?.containerStatuses?.every(({ ready }) => ready) === true;
}

function untilFound(
  place: ClusterProxyPlace,
  what: string,
  isWanted: (pod: Pod) => boolean,
  signal: AbortSignal,
): Promise<Pod> {
  const found = (pods: readonly Pod[]): Pod | undefined => {
    const pod = proxyPod(pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined));
    return pod !== undefined && isWanted(pod) ? pod : undefined;
  };
  return until(place, what, found, signal);
}

async function until<T>(
  place: ClusterProxyPlace,
  what: string,
  find: (pods: readonly Pod[]) => T | undefined,
  signal: AbortSignal,
): Promise<T> {
  const { clock, node } = place;
  const end = clock.monotonic() + patience;
  for (;;) {
    const found = find(await podsOn(place, signal));
    if (found !== undefined) return found;
    if (clock.monotonic() > end) {
      throw new HostError('cluster.proxy', `node ${node}: waited ${patience / 1000} s for ${what} in vain`);
    }
    await clock.sleep(lookPause, signal);
  }
}
