import { type Clock, millis } from '@switchyard/core';
import type { RuntimeListener } from '../runtime/runtime.ts';
import type { LoadBalancerId } from '../spec/load-balancer-spec.ts';

/** Number of disturbances of one load balancer reported at once; further ones within `window` wait increasingly long. */
const freeCount = 3;
const window = 60_000;
const longestWait = 30_000;

/** Reports disturbed load balancers. Repeated disturbances are reported ever more slowly: a container that keeps dying must not keep the controller busy. */
export class DisturbanceThrottle implements Disposable {
  readonly #clock: Clock;
  readonly #listener: RuntimeListener;
  readonly #stop = new AbortController();
  /** When each was disturbed within the last `window`, by key. */
  readonly #recent = new Map<string, readonly number[]>();

  constructor(clock: Clock, listener: RuntimeListener) {
    this.#clock = clock;
    this.#listener = listener;
  }

  /** Something happened to this one; `key` is its own. */
  add(key: string, id: LoadBalancerId): void {
    const now = this.#clock.monotonic();
    const recent = [...(this.#recent.get(key) ?? []).filter((time) => time > now - window), now];
    this.#recent.set(key, recent);
    const wait = recent.length <= freeCount ? 0 : Math.min(longestWait, 1000 * 2 ** (recent.length - freeCount - 1));
    if (wait === 0) this.#listener.onDisturbed([id]);
    else void this.#reportLater(id, wait);
  }

  /** It is no longer there. */
  forget(key: string): void {
    this.#recent.delete(key);
  }

  [Symbol.dispose](): void {
    this.#stop.abort(new Error('the runtime is disposed'));
  }

  async #reportLater(id: LoadBalancerId, wait: number): Promise<void> {
    const { signal } = this.#stop;
    await this.#clock.sleep(millis(wait), signal).catch(() => undefined); // aborted: no report
    if (!signal.aborted) this.#listener.onDisturbed([id]);
  }
}
