import { type Clock, HostError, millis, seconds } from '@switchyard/core';
import { apiResources, type Namespace, type ObjectClient } from '@switchyard/core/kubernetes';
import { runLabel } from './cluster-options.ts';
import { runNamespaces } from './preflight.ts';

/** Inputs for the removal of namespaces. */
export interface RemovalOptions {
  readonly api: ObjectClient;
  readonly clock: Clock;
  readonly onProgress: (text: string) => void;
}

const lookPause = millis(250);
const longestRemoval = seconds(180);
const quietTime = 5_000;

/** Makes the namespace of a run. Pods on the host's network need the level `privileged` of Pod Security, and nothing else of it. */
export async function createRunNamespace(api: ObjectClient, run: string, signal: AbortSignal): Promise<string> {
  const name = `switchyard-conformance-${run}`;
  const labels = {
    [runLabel]: run,
    'pod-security.kubernetes.io/enforce': 'privileged',
    'pod-security.kubernetes.io/warn': 'privileged',
    'pod-security.kubernetes.io/audit': 'privileged',
  };
  await api.create(apiResources.namespaces, { metadata: { name, labels } }, signal);
  return name;
}

/** Removes a namespace with everything in it and waits until it is gone. Rejects with `HostError` that names what blocks the removal. */
export async function removeNamespace(
  name: string,
  { api, clock, onProgress }: RemovalOptions,
  signal: AbortSignal,
): Promise<void> {
  await api.delete(apiResources.namespaces, { name }, {}, signal);
  const start = clock.monotonic();
  for (let told = ''; ; await clock.sleep(lookPause, signal)) {
    const namespace = await api.find(apiResources.namespaces, { name }, signal);
    if (namespace === undefined) return;
    const waited = clock.monotonic() - start;
    const what = whatRemains(namespace);
    if (waited > longestRemoval) {
      throw new HostError('cluster.cleanup', `namespace ${name} is not gone after ${longestRemoval / 1000} s: ${what}`);
    }
    if (waited > quietTime && told !== what) onProgress(`waiting until namespace ${name} is gone: ${what}`);
    if (waited > quietTime) told = what;
  }
}

/** Removes the namespaces of all runs, including runs in progress, and returns their names. */
export async function removeAllRuns(options: RemovalOptions, signal: AbortSignal): Promise<readonly string[]> {
  const names = (await runNamespaces(options.api, signal)).map(({ metadata }) => metadata.name ?? '');
  await Promise.all(names.map((name) => removeNamespace(name, options, signal)));
  return names;
}

function whatRemains({ status }: Namespace): string {
  const remaining = (status?.conditions ?? []).filter(({ status: value }) => value === 'True');
  return remaining.map(({ message }) => message ?? '').join('; ') || 'its pods are ending';
}
