import { systemClock } from '@switchyard/core';
import { apiResources, type ObjectClient, type Pod } from '@switchyard/core/kubernetes';
import { podEvents, type WorkloadEvent } from '@switchyard/lab';
import { type App, inBackground } from '@switchyard/rollout';

/** Everything that happens to an app's pods, from now until disposal, as the API server says it. */
export function followPods(
  api: ObjectClient,
  { namespace, name }: Pick<App, 'namespace' | 'name'>,
): AsyncDisposable & { readonly workloadEvents: readonly WorkloadEvent[] } {
  const pods = new PodHistory();
  const following = inBackground(async (signal) => {
    const select = { namespace, labelSelector: `app=${name}` };
    for await (const event of api.watch(apiResources.pods, select, signal)) {
      if (event.kind === 'listed') pods.replace(event.items, systemClock.now());
      else pods.set(event.object, event.kind === 'deleted', systemClock.now());
    }
  });
  return { workloadEvents: pods.events, ...following };
}

type Now = WorkloadEvent['at'];

/** Pods and their events so far. */
export class PodHistory {
  readonly events: WorkloadEvent[] = [];
  readonly #pods = new Map<string, Pod>();

  /** Those that are left out have gone. */
  replace(pods: readonly Pod[], now: Now): void {
    const kept = new Set(pods.map(keyOf));
    for (const [key, pod] of this.#pods) if (!kept.has(key)) this.set(pod, true, now);
    for (const pod of pods) this.set(pod, false, now);
  }

  /** A container that has ended is one that the API server no longer says to run: it reports no other time. */
  set(pod: Pod, isGone: boolean, now: Now): void {
    const before = this.#pods.get(keyOf(pod));
    const hadEnded = before !== undefined && hasEnded(before);
    if ((isGone || hasEnded(pod)) && !hadEnded) this.events.push(endOf(pod, now));
    this.events.push(...podEvents(before, isGone ? undefined : pod, now));
    if (isGone) this.#pods.delete(keyOf(pod));
    else this.#pods.set(keyOf(pod), pod);
  }
}

function hasEnded({ status }: Pod): boolean {
  return status?.containerStatuses?.[0]?.state?.terminated !== undefined;
}

function endOf({ metadata, spec, status }: Pod, at: Now): WorkloadEvent {
  const { namespace = '', name = '', uid = '' } = metadata;
  const result = status?.containerStatuses?.[0]?.state?.terminated?.exitCode ?? 'unknown';
  const [container = ''] = (spec?.containers ?? []).map((one) => one.name);
  return { kind: 'processEnded', at, namespace, pod: name, uid, node: spec?.nodeName ?? '', container, result };
}

function keyOf({ metadata }: Pod): string {
  return metadata.uid ?? metadata.name ?? '';
}
