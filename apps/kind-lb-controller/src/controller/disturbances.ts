import type { LoadBalancerId } from '../spec/load-balancer-spec.ts';

/** Receives the load balancers that something happened to. Must not throw. */
export type OnDisturbed = (which: readonly LoadBalancerId[] | 'all') => void;

/** Hands on what one runtime says to the controllers of all its clusters, which come and go. */
export class Disturbances {
  readonly #listeners = new Set<OnDisturbed>();

  /** Until it is disposed. */
  listen(onDisturbed: OnDisturbed): Disposable {
    this.#listeners.add(onDisturbed);
    return { [Symbol.dispose]: () => void this.#listeners.delete(onDisturbed) };
  }

  report(which: readonly LoadBalancerId[] | 'all'): void {
    for (const listener of this.#listeners) listener(which);
  }
}
