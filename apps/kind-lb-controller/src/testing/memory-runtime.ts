import { isEqual } from '@switchyard/core';
import { type HaproxyConfiguration, renderHaproxy } from '../haproxy/render-haproxy.ts';
import type { AddressSource } from '../plan/ip-pool.ts';
import type { EnsureOutcome, ExistingLoadBalancer, LoadBalancerRuntime } from '../runtime/runtime.ts';
import { type LoadBalancerId, type LoadBalancerSpec, loadBalancerKey } from '../spec/load-balancer-spec.ts';

/** A call of a runtime. */
export type RuntimeCall = 'addressSource' | 'list' | 'ensure' | 'remove';

/** A runtime without HAProxy: records specs, and can be set to refuse them. */
export class MemoryRuntime implements LoadBalancerRuntime {
  /** By `loadBalancerKey`. */
  readonly running: Map<string, LoadBalancerSpec> = new Map();
  /** Calls that changed something, such as `ensure default/web`. */
  readonly changes: string[] = [];
  /** Asked before each spec is taken; a text is the reason to refuse it. */
  failureOf: (spec: LoadBalancerSpec) => string | undefined = () => undefined;
  /** Called before anything is done; may throw, as when the engine is away, or stop time. */
  before: (call: RuntimeCall, signal: AbortSignal) => Promise<void> | void = () => undefined;
  readonly #source: AddressSource;

  constructor(source: AddressSource) {
    this.#source = source;
  }

  /** HAProxy's configuration. */
  get configuration(): HaproxyConfiguration {
    return renderHaproxy({ specs: [...this.running.values()], ownAddresses: [], weightsPrefix: '/run/weights-' });
  }

  async addressSource(signal: AbortSignal): Promise<AddressSource> {
    await this.before('addressSource', signal);
    return this.#source;
  }

  async list(cluster: string, signal: AbortSignal): Promise<readonly ExistingLoadBalancer[]> {
    await this.before('list', signal);
    const own = [...this.running.values()].filter(({ id }) => id.cluster === cluster);
    return own.map(({ id, addresses }) => ({ id, addresses }));
  }

  async ensure(spec: LoadBalancerSpec, signal: AbortSignal): Promise<EnsureOutcome> {
    await this.before('ensure', signal);
    const message = this.failureOf(spec);
    if (message !== undefined) return { status: 'failed', reason: 'Refused', message };
    const isSame = isEqual(this.running.get(loadBalancerKey(spec.id)), spec);
    if (!isSame) this.changes.push(`ensure ${spec.id.service}`);
    this.running.set(loadBalancerKey(spec.id), spec);
    return { status: isSame ? 'unchanged' : 'applied', where: 'memory', published: [] };
  }

  async remove(id: LoadBalancerId, signal: AbortSignal): Promise<void> {
    await this.before('remove', signal);
    if (this.running.delete(loadBalancerKey(id))) this.changes.push(`remove ${id.service}`);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }
}
