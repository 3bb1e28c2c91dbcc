import { type Clock, HostError, millis, type Millis } from '@switchyard/core';
import type { Deployment, EndpointSlice, Pod } from '@switchyard/core/kubernetes';
import type { Agent } from '../access/agents.ts';
import type { Kubectl } from '../access/kubectl.ts';
import { podSelector, type RolloutObjects } from '../rollout/read-rollout.ts';
import { followAgent, NodeWatch, streamsOf } from './agent-streams.ts';
import { PodTracker, RolloutTracker, SliceTracker } from './object-trackers.ts';
import type { RequestResult, RolloutRecording } from './recording.ts';
import { type LoadOptions, runLoad } from './request-load.ts';
import { parseWatchEvent, type WatchEvent } from './watch-event.ts';

/** A rollout to record, and how. */
export interface RecordOptions {
  readonly objects: RolloutObjects;
  readonly kubectl: Kubectl;
  /** Agents to follow; may be empty. */
  readonly agents: readonly Agent[];
  /** Whether to begin the rollout. */
  readonly restart: boolean;
  /** Requests to send; undefined: none. */
  readonly load: Omit<LoadOptions, 'clock'> | undefined;
  /** Longest wait for the end of the rollout, in seconds. */
  readonly limit: number;
  readonly clock: Clock;
  readonly warn: (text: string) => void;
}

/** Time after the end in which late losses are seen; agents report twice a second. */
const settling = millis(3000);
/** Time of requests before the plug-in begins the rollout. */
const lead = millis(1000);
/** Longest wait for the first lines of all streams. */
const streamLimit = millis(30_000);
const pollInterval = millis(50);

/** Records a rollout until it has ended, or for `limit` seconds, or until `signal` aborts. Rejects with `HostError` if kubectl cannot watch. */
export async function recordRollout(options: RecordOptions, signal: AbortSignal): Promise<RolloutRecording> {
  const { clock, agents, objects, limit, warn } = options;
  const stop = new AbortController();
  const inner = AbortSignal.any([signal, stop.signal]);
  const services = objects.services.map(({ metadata }) => `${objects.namespace}/${metadata.name}`);
  let waiting = agents.length * streamsOf({ services });
  const onBegin = (): void => void waiting--;
  const watches = agents.map(({ node }) => new NodeWatch(node));
  const follow = { services, limit: limit + 60, clock, warn, onBegin };
  const followed = agents.map((agent, index) =>
    followAgent(agent, watches[index] ?? new NodeWatch('?'), follow, inner),
  );
  try {
    const cluster = await ClusterWatch.open(options, inner);
    const start = clock.now();
    await cluster.until(() => cluster.isComplete && waiting === 0, { clock, limit: streamLimit }, signal);
    if (!cluster.hasBegun)
      throw new HostError('watch.silent', 'kubectl get --watch did not print the Deployment in 30 s');
    const load = options.load && runLoad({ ...options.load, clock }, inner);
    if (options.restart) await restart(options, signal);
    else if (cluster.begin === undefined) warn('waiting for a rollout to begin; --restart begins one');
    await untilEnded(cluster, options, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error; // ^C: the report has what was seen
    });
    stop.abort();
    await Promise.all(followed);
    return recordingOf(cluster, { start, watches, requests: await load });
  } finally {
    stop.abort();
  }
}

/** Waits until the rollout has ended and late losses were seen. */
async function untilEnded(cluster: ClusterWatch, options: RecordOptions, signal: AbortSignal): Promise<void> {
  const { clock, limit } = options;
  const last = clock.monotonic() + limit * 1000;
  do {
    const rest = millis(Math.max(0, last - clock.monotonic()));
    await cluster.until(() => cluster.end !== undefined, { clock, limit: rest }, signal);
    await clock.sleep(settling, signal);
  } while (cluster.end === undefined && clock.monotonic() < last);
}

interface Recorded {
  readonly start: Millis;
  readonly watches: readonly NodeWatch[];
  readonly requests: readonly RequestResult[] | undefined;
}

function recordingOf(cluster: ClusterWatch, { start, watches, requests }: Recorded): RolloutRecording {
  const inOrder = <T extends { readonly at: Millis }>(all: readonly T[]): readonly T[] =>
    all.toSorted((a, b) => a.at - b.at);
  const begin = cluster.begin ?? start;
  const packets = watches.flatMap((one) => one.packets).filter(({ at }) => at >= begin);
  return {
    begin,
    end: cluster.end,
    pods: cluster.pods.pods,
    slices: cluster.slices.changes,
    nodes: watches.map(({ state }) => state),
    applies: inOrder(watches.flatMap(({ applies }) => applies)),
    packets: inOrder(packets),
    requests: requests?.filter(({ doneAt }) => doneAt >= begin),
  };
}

async function restart({ objects, kubectl, clock, load }: RecordOptions, signal: AbortSignal): Promise<void> {
  if (load !== undefined) await clock.sleep(lead, signal);
  const { metadata } = objects.deployment;
  await kubectl.run(
    ['rollout', 'restart', `deployments.apps/${metadata.name}`, `--namespace=${objects.namespace}`],
    signal,
  );
}

/** The objects of a rollout, as kubectl prints their changes. */
class ClusterWatch {
  readonly pods: PodTracker;
  readonly slices: SliceTracker;
  readonly #rollout: RolloutTracker;
  #end: Millis | undefined;
  #failure: unknown;

  /** Starts to watch until `signal` aborts. */
  static async open({ objects, kubectl, clock }: RecordOptions, signal: AbortSignal): Promise<ClusterWatch> {
    const { namespace, deployment, services } = objects;
    const names = services.map(({ metadata }) => metadata.name).join(',');
    const slices = ['endpointslices.discovery.k8s.io', `--selector=kubernetes.io/service-name in (${names})`];
    const inNamespace = `--namespace=${namespace}`;
    const text = await kubectl.run(['get', ...slices, inNamespace, '--output=json'], signal);
    const { items } = JSON.parse(text) as { readonly items: readonly EndpointSlice[] };
    const watch = new ClusterWatch(objects, items);
    const follow = async <T>(
      args: readonly string[],
      note: (event: WatchEvent<T>, at: Millis) => void,
    ): Promise<void> => {
      const all = ['get', ...args, inNamespace, '--watch', '--output-watch-events', '--output=json'];
      for await (const line of kubectl.lines(all, signal)) {
        const event = parseWatchEvent<T>(line);
        if (event !== undefined) watch.#note(() => note(event, clock.now()), clock);
      }
      if (!signal.aborted) throw new HostError('watch.ended', `kubectl ${all.join(' ')} ended; begin again`);
    };
    const name = deployment.metadata.name ?? '';
    const all = Promise.all([
      follow<Deployment>(['deployments.apps', `--field-selector=metadata.name=${name}`], (event, at) =>
        watch.#rollout.note(event, at),
      ),
      follow<Pod>(['pods', `--selector=${podSelector(deployment)}`], (event, at) => watch.pods.note(event, at)),
      follow<EndpointSlice>(slices, (event, at) => watch.slices.note(event, at)),
    ]);
    all.catch((error: unknown) => (watch.#failure = error));
    return watch;
  }

  private constructor({ pods, deployment }: RolloutObjects, slices: readonly EndpointSlice[]) {
    const namesOf = (all: readonly (Pod | EndpointSlice)[]): readonly string[] =>
      all.map(({ metadata }) => metadata.name ?? '');
    this.pods = new PodTracker(namesOf(pods));
    this.slices = new SliceTracker(namesOf(slices));
    this.#rollout = new RolloutTracker(deployment);
  }

  /** Whether kubectl watches. */
  get hasBegun(): boolean {
    return this.#rollout.hasSeen;
  }

  /** Whether the state at the begin of the watch is known. Stays false if an object was removed before kubectl watched. */
  get isComplete(): boolean {
    return this.pods.isComplete && this.slices.isComplete && this.#rollout.hasSeen;
  }

  get begin(): Millis | undefined {
    return this.#rollout.begin;
  }

  get end(): Millis | undefined {
    return this.#end;
  }

  /** Waits until a condition is true, or for `limit`. Rejects if kubectl ended. */
  async until(
    condition: () => boolean,
    { clock, limit }: { readonly clock: Clock; readonly limit: Millis },
    signal: AbortSignal,
  ): Promise<void> {
    const end = clock.monotonic() + limit;
    while (!condition() && clock.monotonic() < end) {
      await clock.sleep(pollInterval, signal);
      if (this.#failure !== undefined) throw this.#failure;
    }
  }

  #note(note: () => void, clock: Clock): void {
    note();
    // The streams are not in one order: the Deployment may be complete before a new pod is seen.
    this.#end = this.#rollout.isEnded(this.pods.pods) ? (this.#end ?? clock.now()) : undefined;
  }
}
