import { type Clock, type Logger, millis } from '@switchyard/core';
import { healthUpdateInLog } from '../haproxy/haproxy-health.ts';
import { needsKernel } from '../spec/kernel-ports.ts';
import type { LoadBalancerSpec } from '../spec/load-balancer-spec.ts';
import type { RuntimeListener } from '../runtime/runtime.ts';
import type { DockerCli } from './docker-cli.ts';
import { LogFollower } from './log-follower.ts';
import type { StampedLine } from './log-line.ts';

/** With what the health of targets is watched. */
export interface HealthWatchOptions {
  readonly cli: DockerCli;
  readonly clock: Clock;
  readonly log: Logger;
  readonly listener: RuntimeListener;
  /** Whether changes of all load balancers are reported, or only those that kernel rules depend on. */
  readonly followsTargets: boolean;
  /**
   * Brings the kernel rules of a load balancer in line with its targets' health. Undefined: done; a text: why not, so try again. Must not
   * reject.
   */
  followHealth(container: string, signal: AbortSignal): Promise<string | undefined>;
}

const retryPause = millis(1000);

/** Reads in HAProxy's log which targets come and go, of those containers that need it. */
export class HealthWatch implements AsyncDisposable {
  readonly #options: HealthWatchOptions;
  readonly #watched = new Map<string, Watched>();

  constructor(options: HealthWatchOptions) {
    this.#options = options;
  }

  /**
   * The container runs this spec: follow it if it needs that, from `since` (milliseconds since the Unix epoch) if it was not followed yet.
   */
  async watch(container: string, spec: LoadBalancerSpec, since: number): Promise<void> {
    if (!needsKernel(spec) && !this.#options.followsTargets) return this.forget(container);
    const there = this.#watched.get(container);
    if (there !== undefined) {
      there.spec = spec;
      return;
    }
    this.#watched.set(container, new Watched(this.#options, { container, spec, since }));
  }

  /** The container is no longer to be followed. */
  async forget(container: string): Promise<void> {
    const there = this.#watched.get(container);
    this.#watched.delete(container);
    await there?.[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#watched.keys()].map((one) => this.forget(one)));
  }
}

class Watched implements AsyncDisposable {
  spec: LoadBalancerSpec;
  readonly #options: HealthWatchOptions;
  readonly #container: string;
  readonly #stop = new AbortController();
  readonly #follower: LogFollower;
  #following: Promise<void> | undefined;
  #isDirty = false;

  constructor(options: HealthWatchOptions, what: { container: string; spec: LoadBalancerSpec; since: number }) {
    const { container, spec, since } = what;
    const { cli, clock, log } = options;
    this.spec = spec;
    this.#options = options;
    this.#container = container;
    this.#follower = new LogFollower({ cli, clock, log, container, since, onLine: (line) => this.#onLine(line) });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Error('the container is no longer followed'));
    await Promise.all([this.#follower[Symbol.asyncDispose](), this.#following]);
  }

  #onLine({ time, text }: StampedLine): void {
    const { changes = [], concernsKernel = false } = healthUpdateInLog(text, [this.spec], time) ?? {};
    for (const change of changes) this.#options.listener.onTargetChange(change);
    if (!concernsKernel) return;
    this.#isDirty = true;
    this.#following ??= this.#follow().finally(() => (this.#following = undefined));
  }

  /** One worker at a time, for all that happened until it begins. */
  async #follow(): Promise<void> {
    const { clock, log, followHealth } = this.#options;
    const { signal } = this.#stop;
    let isLogged = false;
    while (this.#isDirty && !signal.aborted) {
      this.#isDirty = false;
      const reason = await followHealth(this.#container, signal);
      if (reason === undefined || signal.aborted) continue;
      if (!isLogged)
        log.warn('kernel rules do not follow the health of targets', { container: this.#container, reason });
      isLogged = true;
      this.#isDirty = true;
      await clock.sleep(retryPause, signal).catch(() => undefined); // aborted: the loop ends
    }
    if (isLogged && !signal.aborted)
      log.info('kernel rules follow the health of targets again', { container: this.#container });
  }
}
