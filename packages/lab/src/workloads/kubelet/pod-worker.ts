import { type Clock, type IpAddress, ipFamilies, type Logger, millis } from '@switchyard/core';
import type { Container, Pod } from '@switchyard/core/kubernetes';
import type { Lab, LabNode, LabPod, PerFamily } from '../../lab.ts';
import { isPodTerminating, type TimeScale } from '../facts.ts';
import type { WorkloadEvent } from '../workload-event.ts';
import { ContainerRunner, createDeadline, type Deadline } from './container-runner.ts';
import type { ContainerView, PodView } from './pod-status.ts';
import type { NodeProbes } from './readiness.ts';

/** Dependencies of a pod, passed by its kubelet. */
export interface PodWorkerOptions {
  readonly lab: Lab;
  readonly node: LabNode;
  readonly pod: Pod;
  readonly probes: NodeProbes;
  readonly scale: TimeScale;
  readonly clock: Clock;
  readonly log: Logger;
  readonly emit: (event: WorkloadEvent) => void;
  /** Called when the view has changed, to write the status later. */
  readonly onChange: () => void;
  /** Resolves when the API has the current view. */
  readonly writeStatus: () => Promise<void>;
  readonly removeObject: () => Promise<void>;
}

/** One pod on its node, from its namespace to the removal of its object. */
export class PodWorker {
  /** Resolves when the pod's processes and namespace are removed. */
  readonly finished: Promise<void>;
  readonly #options: PodWorkerOptions;
  readonly #gone = new AbortController();
  readonly #terminating = Promise.withResolvers<Deadline>();
  #deadline: Deadline | undefined;
  #pod: Pod;
  #host: LabPod | undefined;
  #runners: readonly ContainerRunner[] = [];
  #isOver = false;

  constructor(options: PodWorkerOptions, after: Promise<void>) {
    this.#options = options;
    this.#pod = options.pod;
    this.update(options.pod);
    this.finished = after
      .then(() => this.#live())
      .catch((error: unknown) => {
        if (!this.#gone.signal.aborted)
          options.log.error('running a pod failed; it is not retried', { pod: this.#name, error });
      });
  }

  /** Takes a change of the pod object. */
  update(pod: Pod): void {
    this.#pod = pod;
    if (!isPodTerminating(pod)) return;
    const { clock, scale } = this.#options;
    const at = millis(clock.monotonic() + scale.of(pod.metadata.deletionGracePeriodSeconds ?? 0));
    if (this.#deadline === undefined) {
      this.#deadline = createDeadline(clock, at);
      this.#terminating.resolve(this.#deadline);
    } else this.#deadline.shorten(at);
  }

  /** Ends the pod's processes at once: the object was deleted, or the kubelet stops. */
  abandon(): void {
    this.#gone.abort(new DOMException('the pod was deleted', 'AbortError'));
  }

  get view(): PodView {
    const { node, clock } = this.#options;
    const waiting = (container: Container): ContainerView => ({
      name: container.name,
      image: container.image ?? '',
      state: { kind: 'waiting', reason: 'ContainerCreating' },
      isReady: false,
      restartCount: this.#restartCount(container.name),
    });
    const containers = this.#pod.spec?.containers ?? [];
    return {
      containers: this.#runners.length === 0 ? containers.map(waiting) : this.#runners.map(({ view }) => view),
      podIps: addressList(this.#host?.addresses),
      hostIps: addressList(node.addresses),
      isOver: this.#isOver,
      now: clock.now(),
    };
  }

  async #live(): Promise<void> {
    const { signal } = this.#gone;
    // Already terminating at the start: the previous kubelet has ended its processes.
    if (this.#deadline !== undefined) return this.#options.removeObject();
    try {
      this.#host = await this.#makeHost(signal);
      await this.#runUntilEnd(this.#host, signal);
    } finally {
      await Promise.all(this.#runners.map((runner) => runner.kill()));
      if (this.#host !== undefined) await this.#options.lab.removePod(this.#host);
    }
    if (signal.aborted) return;
    this.#isOver = true;
    await this.#options.writeStatus();
    await this.#options.removeObject();
  }

  async #runUntilEnd(host: LabPod, signal: AbortSignal): Promise<void> {
    this.#runners = (this.#pod.spec?.containers ?? []).map((container) => this.#makeRunner(host, container));
    const gone = new Promise<'gone'>((resolve) => signal.addEventListener('abort', () => resolve('gone')));
    const ended = Promise.all(this.#runners.map((runner) => runner.run()));
    const first = await Promise.race([gone, this.#terminating.promise, ended.then(() => 'ended' as const)]);
    if (first === 'gone' || signal.aborted) return;
    if (first === 'ended') {
      this.#isOver = true;
      this.#options.onChange();
    }
    const deadline = await Promise.race([this.#terminating.promise, gone]);
    if (deadline === 'gone') return;
    await Promise.all(this.#runners.map((runner) => runner.stop(deadline, signal)));
    await ended;
    if (!signal.aborted) await this.#options.writeStatus(); // Ready False, before the removal of the namespace
  }

  #makeRunner(host: LabPod, container: Container): ContainerRunner {
    return new ContainerRunner({
      ...this.#options,
      pod: this.#pod,
      container,
      host,
      restartPolicy: this.#pod.spec?.restartPolicy ?? 'Always',
      restartCount: this.#restartCount(container.name),
    });
  }

  /** A container whose status shows a start counts one more restart: a previous kubelet owned its process. */
  #restartCount(container: string): number {
    const known = this.#options.pod.status?.containerStatuses?.find(({ name }) => name === container);
    return known === undefined ? 0 : known.restartCount + (known.state?.['waiting'] === undefined ? 1 : 0);
  }

  async #makeHost(signal: AbortSignal): Promise<LabPod> {
    const { lab, node, clock, log, scale } = this.#options;
    if (this.#pod.spec?.hostNetwork === true) return hostNetworkPod(node, this.#name);
    for (let seconds = 1; ; seconds = Math.min(60, seconds * 2)) {
      signal.throwIfAborted();
      try {
        return await lab.addPod(node, this.#name, knownAddresses(this.#pod));
      } catch (error) {
        log.warn('cannot make the namespace of a pod, will retry', { pod: this.#name, error });
        await clock.sleep(scale.of(seconds), signal);
      }
    }
  }

  /** Unique among pods: namespaces have no dots. */
  get #name(): string {
    return `${this.#pod.metadata.name ?? ''}.${this.#pod.metadata.namespace ?? 'default'}`;
  }
}

function addressList(addresses: PerFamily<IpAddress> | undefined): readonly IpAddress[] {
  return ipFamilies.flatMap((family) => addresses?.[family] ?? []);
}

/** A pod keeps its addresses when a new kubelet starts it again. */
function knownAddresses(pod: Pod): PerFamily<IpAddress> | undefined {
  const known = (pod.status?.podIPs ?? []).map(({ ip }) => ip as IpAddress); // written by a kubelet of this lab
  if (known.length === 0) return undefined;
  return Object.fromEntries(known.map((ip) => [ip.includes(':') ? 'IPv6' : 'IPv4', ip]));
}

/** A pod with `hostNetwork: true` is in its node's namespace and has the node's addresses. */
function hostNetworkPod(node: LabNode, name: string): LabPod {
  const { namespace, addresses, run, spawn } = node;
  return { name, namespace, addresses, node, run, spawn };
}
