import { isEqual } from '@switchyard/core';
import { idText } from '../haproxy/haproxy-names.ts';
import { type HaproxyConfiguration, renderHaproxy } from '../haproxy/render-haproxy.ts';
import type { AddressSource } from '../plan/ip-pool.ts';
import type { EnsureOutcome, ExistingLoadBalancer, LoadBalancerRuntime } from '../runtime/runtime.ts';
import type { LoadBalancerId, LoadBalancerSpec } from '../spec/load-balancer-spec.ts';

/** A runtime without HAProxy: remembers what it was given, and can be told to refuse it. */
export class MemoryRuntime implements LoadBalancerRuntime {
  /** By `idText`. */
  readonly running: Map<string, LoadBalancerSpec> = new Map();
  /** Asked before each spec is taken; a text is the reason to refuse it. */
  judge: (spec: LoadBalancerSpec) => string | undefined = () => undefined;
  readonly #source: AddressSource;

  constructor(source: AddressSource) {
    this.#source = source;
  }

  /** What HAProxy would be told. */
  get configuration(): HaproxyConfiguration {
    return renderHaproxy({ specs: [...this.running.values()], ownAddresses: [], weightsPrefix: '/run/weights-' });
  }

  addressSource(): Promise<AddressSource> {
    return Promise.resolve(this.#source);
  }

  list(cluster: string): Promise<readonly ExistingLoadBalancer[]> {
    const own = [...this.running.values()].filter(({ id }) => id.cluster === cluster);
    return Promise.resolve(own.map(({ id, addresses }) => ({ id, addresses })));
  }

  ensure(spec: LoadBalancerSpec): Promise<EnsureOutcome> {
    const message = this.judge(spec);
    if (message !== undefined) return Promise.resolve({ status: 'failed', reason: 'Refused', message });
    const isSame = isEqual(this.running.get(idText(spec.id)), spec);
    this.running.set(idText(spec.id), spec);
    return Promise.resolve({ status: isSame ? 'unchanged' : 'applied', where: 'memory', published: [] });
  }

  remove(id: LoadBalancerId): Promise<void> {
    this.running.delete(idText(id));
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }
}
