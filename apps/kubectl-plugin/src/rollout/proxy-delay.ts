import { HostError, messageOf, type Millis, seconds } from '@switchyard/core';
import type { Pod } from '@switchyard/core/kubernetes';
import { forwardPort } from '../access/forward-port.ts';
import type { Kubectl } from '../access/kubectl.ts';
import { reach } from '../access/reach.ts';

/** Delay of a cluster's kube-proxy, by its own metrics. */
export interface MeasuredDelay {
  /** 99 of 100 changes of endpoints were in the rules after this time. */
  readonly longest: Millis;
  readonly changes: number;
  readonly nodes: number;
}

/** It, or why it is not known. */
export type ProxyDelay = MeasuredDelay | { readonly why: string };

/** At most so many nodes are read. */
const readNodes = 5;
const metricsPort = 10_249;
const timeout = seconds(10);

/** Asks kube-proxy on a few nodes, through `kubectl port-forward`. */
export async function readDelay(kubectl: Kubectl, signal: AbortSignal): Promise<ProxyDelay> {
  const namespace = 'kube-system';
  const limited = AbortSignal.any([signal, AbortSignal.timeout(timeout)]);
  try {
    const choice = ['--selector=k8s-app=kube-proxy', '--field-selector=status.phase=Running'];
    const list = await kubectl.run(['get', 'pods', `--namespace=${namespace}`, ...choice, '--output=json'], limited);
    const { items } = JSON.parse(list) as { readonly items: readonly Pod[] };
    const step = Math.ceil(items.length / readNodes);
    const pods = items.filter((_, index) => index % step === 0).map(({ metadata }) => metadata.name ?? '');
    if (pods.length === 0)
      throw new HostError('rollout.delay', `no pod of ${namespace} has the label k8s-app=kube-proxy`);
    using stack = new DisposableStack();
    const forward = async (pod: string): Promise<Proxy> => {
      const { url } = stack.use(await forwardPort({ namespace, pod, port: metricsPort }, kubectl, limited));
      return { pod, url };
    };
    return await measureDelay(await Promise.all(pods.map(forward)), limited);
  } catch (error) {
    signal.throwIfAborted();
    return { why: messageOf(error) };
  }
}

/** A pod of kube-proxy, and where its metrics server can be reached. */
interface Proxy {
  readonly pod: string;
  readonly url: string;
}

const metric = 'kubeproxy_network_programming_duration_seconds';

/** Fewer changes say nothing of the slowest ones. */
const leastChanges = 20;

/** Reads the metrics of these pods. Rejects with `HostError` if one does not answer, and if they have seen too few changes. */
export async function measureDelay(proxies: readonly Proxy[], signal: AbortSignal): Promise<MeasuredDelay> {
  const buckets = new Map<number, number>();
  for (const page of await Promise.all(proxies.map((proxy) => readMetrics(proxy, signal)))) addBuckets(buckets, page);
  const changes = buckets.get(Infinity) ?? 0;
  if (changes < leastChanges) throw new HostError('rollout.delay', `it has counted ${changes} changes of endpoints`);
  return { longest: seconds(quantile(buckets, 0.99)), changes, nodes: proxies.length };
}

async function readMetrics({ pod, url }: Proxy, signal: AbortSignal): Promise<string> {
  const failure = (why: string): HostError => new HostError('rollout.delay', `metrics of ${pod}: ${why}`);
  const response = await reach(`${url}/metrics`, { signal }, failure);
  if (!response.ok) throw failure(`HTTP status ${response.status}`);
  return response.text();
}

/** Adds the cumulative counts of a metrics page, of all families, by upper bound in seconds. */
function addBuckets(buckets: Map<number, number>, page: string): void {
  const pattern = new RegExp(`^${metric}_bucket\\{.*?le="([^"]+)"[^}]*\\} (\\S+)`, 'gm');
  for (const [, text = '', count] of page.matchAll(pattern)) {
    const bound = text === '+Inf' ? Infinity : Number(text);
    buckets.set(bound, (buckets.get(bound) ?? 0) + Number(count));
  }
}

/** As Prometheus' `histogram_quantile`: even within a bucket, and the highest bound for what is beyond it. */
function quantile(buckets: ReadonlyMap<number, number>, share: number): number {
  const wanted = share * (buckets.get(Infinity) ?? 0);
  let [below, before] = [0, 0];
  for (const [bound, count] of [...buckets].toSorted(([a], [b]) => a - b)) {
    if (bound === Infinity) break;
    if (count >= wanted) return below + ((bound - below) * (wanted - before)) / (count - before);
    [below, before] = [bound, count];
  }
  return below;
}
