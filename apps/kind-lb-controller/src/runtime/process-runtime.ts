import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import {
  abortable,
  type Clock,
  HostError,
  InvariantError,
  type IpAddress,
  isEqual,
  type Logger,
  messageOf,
  type Millis,
  millis,
  seconds,
} from '@switchyard/core';
import type { CommandRunner } from '@switchyard/host';
import { healthUpdate, targetHealth } from '../haproxy/haproxy-health.ts';
import type { ServerStateChange } from '../haproxy/haproxy-log.ts';
import { haproxyFiles } from '../haproxy/haproxy-files.ts';
import { HaproxyProcess } from '../haproxy/haproxy-process.ts';
import { needsKernel } from '../spec/kernel-ports.ts';
import { renderHaproxy } from '../haproxy/render-haproxy.ts';
import type { InterfaceAddresses } from '../kernel/interface-addresses.ts';
import type { KernelForwarder } from '../kernel/kernel-forwarder.ts';
import type { TargetRoutes } from '../kernel/target-routes.ts';
import type { AddressSource } from '../plan/ip-pool.ts';
import { type LoadBalancerId, type LoadBalancerSpec, loadBalancerKey } from '../spec/load-balancer-spec.ts';
import type { EnsureOutcome, ExistingLoadBalancer, LoadBalancerRuntime, RuntimeListener } from './runtime.ts';
import { routesDuring, routesOf } from './routes-during.ts';
import { asSaved, readSpecs, removeSpecs, writeSpecs } from './saved-specs.ts';
import { PoolAddresses } from './pool-addresses.ts';

/** One HAProxy, and the kernel of its namespace, for all load balancers. */
export interface ProcessRuntimeOptions {
  /** Kept short by the caller, see `maxRunDirectoryLength`. Created if missing. */
  readonly runDirectory: string;
  /** The HAProxy program. */
  readonly program: string;
  /** Name under /run/netns; undefined: our own. */
  readonly netns: string | undefined;
  /** Leave HAProxy and kernel rules in place when this object is disposed. */
  readonly isKeptOnExit: boolean;
  readonly source: AddressSource;
  /** Undefined: the addresses are on an interface already. */
  readonly interfaceAddresses: InterfaceAddresses | undefined;
  /** Undefined: load balancers that need routes are refused. */
  readonly routes: TargetRoutes | undefined;
  /** Undefined: UDP, SCTP and the transparent path are refused. */
  readonly kernel: KernelForwarder | undefined;
  readonly listener: RuntimeListener;
  readonly runner: CommandRunner;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The wanted spec of a load balancer; undefined to remove it. */
interface Change {
  readonly id: LoadBalancerId;
  readonly spec: LoadBalancerSpec | undefined;
  readonly settled: PromiseWithResolvers<EnsureOutcome>;
}

type Specs = ReadonlyMap<string, LoadBalancerSpec>;

/** Result of a batch. `before` had been running. */
type Verdict =
  | { readonly status: 'taken'; readonly before: Specs; readonly kernelError: string | undefined }
  | { readonly status: 'failed'; readonly reason: string; readonly message: string };

/** Calls that come together are one reload. */
const batchTime = millis(20);
/** Checks of several targets fail together. */
const followTime = millis(5);
const retryTime = seconds(1);

/** Goes on from what an earlier runtime with the same run directory left: with its load balancers, until they are changed or removed. */
export async function openProcessRuntime(options: ProcessRuntimeOptions): Promise<ProcessRuntime> {
  return new ProcessRuntime(options, await readSpecs(specsFile(options)));
}

/**
 * Runs all load balancers in one HAProxy. Calls of `ensure` and `remove` are taken together into one change; when HAProxy
 * refuses that, halves are tried, and so on, so that a bad one fails alone.
 */
export class ProcessRuntime implements LoadBalancerRuntime {
  readonly #options: ProcessRuntimeOptions;
  readonly #haproxy: HaproxyProcess;
  readonly #lifetime = new AbortController();
  #running: Specs;
  #queue = new Map<string, Change>();
  /** Load balancers of an earlier process that no call has named yet. */
  readonly #unconfirmed: Set<string>;
  readonly #addresses: PoolAddresses;
  /** Addresses of load balancers whose removal was called for and may not have ended: its caller may give up and call again. */
  readonly #leaving = new Map<string, readonly IpAddress[]>();
  /** Specs that HAProxy's log may refer to: during a reload, the new ones. */
  #expected: Specs | undefined;
  #tail: Promise<unknown> = Promise.resolve();
  #isFollowing = false;

  constructor(options: ProcessRuntimeOptions, running: readonly LoadBalancerSpec[]) {
    this.#options = options;
    this.#running = new Map(running.map((spec) => [loadBalancerKey(spec.id), spec]));
    this.#unconfirmed = new Set(this.#running.keys());
    this.#addresses = new PoolAddresses(options, this.#lifetime.signal);
    this.#addresses.use(addressesOf(this.#running), () => Promise.resolve());
    this.#haproxy = new HaproxyProcess({
      ...options,
      onStateChange: (change) => this.#report(change),
      onEnd: () => options.listener.onDisturbed('all'),
    });
  }

  addressSource(): Promise<AddressSource> {
    return Promise.resolve(this.#options.source);
  }

  list(cluster: string): Promise<readonly ExistingLoadBalancer[]> {
    const own = [...this.#running.values()].filter(({ id }) => id.cluster === cluster);
    return Promise.resolve(own.map(({ id, addresses }) => ({ id, addresses })));
  }

  ensure(spec: LoadBalancerSpec, signal: AbortSignal): Promise<EnsureOutcome> {
    if (this.#options.kernel === undefined && needsKernel(spec)) {
      const message = `${spec.id.service} has UDP or SCTP ports or takes the transparent path, which needs --interface`;
      return Promise.resolve({ status: 'failed', reason: 'KernelForwardingUnavailable', message });
    }
    if (this.#options.routes === undefined && spec.routes.length > 0) {
      const message = `${spec.id.service} has no NodePorts and needs routes to pods, which needs --interface`;
      return Promise.resolve({ status: 'failed', reason: 'RoutesUnavailable', message });
    }
    return this.#request({ id: spec.id, spec: asSaved(spec) }, signal);
  }

  /** Resolves when connections have ended, or had `drainLimit` to do so. New ones are refused long before. */
  async remove(id: LoadBalancerId, signal: AbortSignal): Promise<void> {
    const key = loadBalancerKey(id);
    const addresses = this.#running.get(key)?.addresses ?? this.#leaving.get(key) ?? [];
    this.#leaving.set(key, addresses);
    const outcome = await this.#request({ id, spec: undefined }, signal);
    if (outcome.status === 'failed') {
      throw new HostError(
        'lb.remove',
        `cannot remove the load balancer of ${id.service}: ${outcome.message}; will be tried again`,
      );
    }
    await abortable(this.#addresses.drained(addresses), signal);
    this.#leaving.delete(key);
  }

  /** Ends HAProxy and takes the kernel's rules back, unless `isKeptOnExit` is set. Addresses stay on the interface. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#lifetime.abort(new DOMException('the runtime is disposed', 'AbortError'));
    await this.#tail;
    const { kernel, isKeptOnExit, log } = this.#options;
    if (!isKeptOnExit) {
      const nothing = { specs: [], health: { isUp: () => false }, ownAddresses: [] };
      const clearing = kernel?.apply(nothing, new AbortController().signal);
      await clearing?.catch((error: unknown) => log.warn("the kernel's rules stay behind", { error }));
      await removeSpecs(specsFile(this.#options));
    }
    await kernel?.[Symbol.asyncDispose]();
    await this.#haproxy[Symbol.asyncDispose]();
  }

  async #request(change: Omit<Change, 'settled'>, signal: AbortSignal): Promise<EnsureOutcome> {
    signal.throwIfAborted();
    this.#lifetime.signal.throwIfAborted();
    const settled = Promise.withResolvers<EnsureOutcome>();
    const isFirst = this.#queue.size === 0;
    const replaced = this.#queue.get(loadBalancerKey(change.id)); // its caller has given up, or it would not be replaced
    if (replaced !== undefined) settled.promise.then(replaced.settled.resolve, replaced.settled.reject);
    this.#queue.set(loadBalancerKey(change.id), { ...change, settled });
    if (isFirst) void this.#exclusively(() => this.#workOff());
    return abortable(settled.promise, AbortSignal.any([signal, this.#lifetime.signal]));
  }

  /** One after the other: nothing here may overlap. */
  #exclusively(task: () => Promise<void>): Promise<void> {
    const done = this.#tail.then(task);
    this.#tail = done.catch((error: unknown) => {
      if (!this.#lifetime.signal.aborted) this.#options.log.error('cannot change load balancers', { error });
    });
    return done;
  }

  async #workOff(): Promise<void> {
    await this.#options.clock.sleep(batchTime, this.#lifetime.signal);
    const changes = [...this.#queue.values()];
    this.#queue = new Map();
    try {
      await this.#applyOrSplit(changes);
    } catch (error) {
      for (const { settled } of changes) settled.reject(error); // those that are settled stay so
    }
  }

  /** Finds the bad ones among many with few reloads. */
  async #applyOrSplit(changes: readonly Change[]): Promise<void> {
    const verdict = await this.#apply(changes, this.#running);
    const [first] = changes;
    if (verdict.status === 'taken' || first === undefined) return this.#settle(changes, verdict);
    if (changes.length === 1) return this.#settle(changes, await this.#applyWithoutUnconfirmed(first, verdict));
    const middle = Math.ceil(changes.length / 2);
    await this.#applyOrSplit(changes.slice(0, middle));
    await this.#applyOrSplit(changes.slice(middle));
  }

  #settle(changes: readonly Change[], verdict: Verdict): void {
    for (const change of changes) change.settled.resolve(this.#outcomeOf(change, verdict));
  }

  #outcomeOf({ id, spec }: Change, verdict: Verdict): EnsureOutcome {
    if (verdict.status === 'failed') return verdict;
    const { before, kernelError } = verdict;
    if (kernelError !== undefined && spec !== undefined && needsKernel(spec)) {
      return { status: 'failed', reason: 'KernelRefused', message: kernelError };
    }
    const { netns } = this.#options;
    return {
      status: isEqual(before.get(loadBalancerKey(id)), spec) ? 'unchanged' : 'applied',
      where: `HAProxy ${this.#haproxy.pid ?? ''}${netns === undefined ? '' : ` in namespace ${netns}`}`,
      published: [],
    };
  }

  /** Retries without load balancers of an earlier process, whose addresses may belong to others now. */
  async #applyWithoutUnconfirmed(change: Change, verdict: Verdict): Promise<Verdict> {
    if (this.#unconfirmed.size === 0) return verdict;
    const confirmed = [...this.#running].filter(([key]) => !this.#unconfirmed.has(key));
    return this.#apply([change], new Map(confirmed));
  }

  /** Makes before use, removes only after nothing uses it. */
  async #apply(changes: readonly Change[], kept: Specs): Promise<Verdict> {
    const { routes, log, runDirectory } = this.#options;
    const { signal } = this.#lifetime;
    const before = this.#running;
    const next = withChanges(kept, changes);
    try {
      await mkdir(runDirectory, { recursive: true, mode: 0o700 });
      await this.#addresses.add(addressesOf(next));
      const wanted = routesOf(next.values());
      await routes?.apply(routesDuring(routesOf(before.values()), wanted), signal);
      const { weightsPrefix } = haproxyFiles(runDirectory);
      const configuration = renderHaproxy({ specs: [...next.values()], ownAddresses: [], weightsPrefix });
      this.#expected = next;
      const result = await this.#haproxy.apply(configuration, signal);
      if (result.status === 'rejected') return { status: 'failed', reason: 'HAProxyRejected', message: result.reason };
      if (result.status === 'applied') log.info('HAProxy took a new configuration', { loadBalancers: next.size });
      this.#running = next;
      const settled = new Set<string>(changes.map(({ id }) => loadBalancerKey(id)));
      for (const key of this.#unconfirmed) if (settled.has(key) || !next.has(key)) this.#unconfirmed.delete(key);
      await writeSpecs(specsFile(this.#options), [...next.values()]);
      const kernelError = await this.#forward();
      await routes?.apply(wanted, signal);
      this.#addresses.use(addressesOf(next), () => this.#removeUnused());
      await this.#addresses.removeUnused();
      return { status: 'taken', before, kernelError };
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof InvariantError) throw error;
      return { status: 'failed', reason: 'HostRefused', message: messageOf(error) };
    } finally {
      this.#expected = undefined;
    }
  }

  /** Makes the kernel follow what runs and HAProxy's checks. Returns what went wrong; then it is tried again. */
  async #forward(): Promise<string | undefined> {
    const { kernel, log } = this.#options;
    const { signal } = this.#lifetime;
    const specs = [...this.#running.values()];
    try {
      const states = specs.some(needsKernel) ? await this.#haproxy.serverStates(signal) : '';
      await kernel?.apply({ specs, health: targetHealth(specs, states), ownAddresses: [] }, signal);
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      log.warn('the kernel does not forward as it should; will be tried again', { error });
      this.#followHealth(retryTime);
      return messageOf(error);
    }
  }

  #followHealth(delay: Millis): void {
    if (this.#isFollowing) return;
    this.#isFollowing = true;
    const { clock } = this.#options;
    const follow = async (): Promise<void> => {
      await clock.sleep(delay, this.#lifetime.signal);
      await this.#exclusively(async () => {
        this.#isFollowing = false; // what changes from now on needs another look
        await this.#forward();
      });
    };
    follow().catch(() => undefined); // aborted, or logged by `#exclusively`
  }

  #report(change: ServerStateChange): void {
    const { clock, listener } = this.#options;
    const { changes, concernsKernel } = healthUpdate(
      change,
      [...(this.#expected ?? this.#running).values()],
      clock.now(),
    );
    for (const one of changes) listener.onTargetChange(one);
    if (concernsKernel) this.#followHealth(followTime);
  }

  #removeUnused(): Promise<void> {
    return this.#exclusively(() => this.#addresses.removeUnused()).catch(() => undefined); // logged by `#exclusively`
  }
}

function specsFile({ runDirectory }: ProcessRuntimeOptions): string {
  return join(runDirectory, 'specs.json');
}

function withChanges(before: Specs, changes: readonly Change[]): Specs {
  const next = new Map(before);
  for (const { id, spec } of changes) {
    if (spec === undefined) next.delete(loadBalancerKey(id));
    else next.set(loadBalancerKey(id), spec);
  }
  return next;
}

function addressesOf(specs: Specs): readonly IpAddress[] {
  return [...specs.values()].flatMap(({ addresses }) => addresses);
}
