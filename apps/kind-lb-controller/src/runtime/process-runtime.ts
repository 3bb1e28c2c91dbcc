import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type Clock,
  DataplaneError,
  HostError,
  type IpAddress,
  isEqual,
  type Logger,
  messageOf,
  type Millis,
  millis,
  seconds,
} from '@switchyard/core';
import type { CommandRunner } from '@switchyard/host';
import { healthNews, targetHealth } from '../haproxy/haproxy-health.ts';
import type { ServerStateChange } from '../haproxy/haproxy-log.ts';
import { idText } from '../haproxy/haproxy-names.ts';
import { haproxyFiles } from '../haproxy/haproxy-files.ts';
import { HaproxyProcess } from '../haproxy/haproxy-process.ts';
import { needsKernel } from '../haproxy/haproxy-servers.ts';
import { renderHaproxy } from '../haproxy/render-haproxy.ts';
import type { InterfaceAddresses } from '../kernel/interface-addresses.ts';
import type { KernelForwarder } from '../kernel/kernel-forwarder.ts';
import type { TargetRoutes } from '../kernel/target-routes.ts';
import type { AddressSource } from '../plan/ip-pool.ts';
import type { LoadBalancerId, LoadBalancerSpec } from '../spec/load-balancer-spec.ts';
import type { EnsureOutcome, ExistingLoadBalancer, LoadBalancerRuntime, RuntimeListener } from './runtime.ts';
import { routesDuring, routesOf } from './routes-during.ts';
import { asSaved, readSpecs, removeSpecs, writeSpecs } from './saved-specs.ts';
import { waitForDrain } from './wait-for-drain.ts';

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

/** A load balancer that is to be as `spec` says, or gone. */
interface Change {
  readonly id: LoadBalancerId;
  readonly spec: LoadBalancerSpec | undefined;
  readonly settled: PromiseWithResolvers<EnsureOutcome>;
}

type Specs = ReadonlyMap<string, LoadBalancerSpec>;

/** What became of a batch. `before` had been running. */
type Verdict =
  | { readonly status: 'taken'; readonly before: Specs; readonly kernelComplaint: string | undefined }
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
 * refuses that, each is tried by itself, so that a bad one fails alone.
 */
export class ProcessRuntime implements LoadBalancerRuntime {
  readonly #options: ProcessRuntimeOptions;
  readonly #haproxy: HaproxyProcess;
  readonly #lifetime = new AbortController();
  #running: Specs;
  /** What HAProxy was given last, taken or not: it tells of its targets before we know that it took it. */
  #given: Specs = new Map();
  #queue = new Map<string, Change>();
  /** Addresses without a load balancer on which connections may go on, until the promise resolves. */
  readonly #draining = new Map<IpAddress, Promise<void>>();
  #tail: Promise<unknown> = Promise.resolve();
  #isFollowing = false;

  constructor(options: ProcessRuntimeOptions, running: readonly LoadBalancerSpec[]) {
    this.#options = options;
    this.#running = new Map(running.map((spec) => [idText(spec.id), spec]));
    this.#haproxy = new HaproxyProcess({
      ...options,
      onStateChange: (change) => this.#tell(change),
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
    const addresses = this.#running.get(idText(id))?.addresses ?? [];
    const outcome = await this.#request({ id, spec: undefined }, signal);
    if (outcome.status === 'failed') {
      throw new HostError(
        'lb.remove',
        `cannot remove the load balancer of ${id.service}: ${outcome.message}; will be tried again`,
      );
    }
    await untilAborted(Promise.all(addresses.map((address) => this.#draining.get(address))), signal);
  }

  /** Ends HAProxy and takes the kernel's rules back, unless they are to be kept. Addresses stay on the interface. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#lifetime.abort(new DOMException('the runtime is disposed', 'AbortError'));
    await this.#tail;
    const { kernel, isKeptOnExit } = this.#options;
    if (!isKeptOnExit) {
      const nothing = { specs: [], health: { isUp: () => false }, ownAddresses: [] };
      await kernel?.apply(nothing, new AbortController().signal);
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
    this.#queue.set(idText(change.id), { ...change, settled });
    if (isFirst) void this.#exclusively(() => this.#workOff());
    return untilAborted(settled.promise, AbortSignal.any([signal, this.#lifetime.signal]));
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
      const together = await this.#apply(changes);
      if (together.status === 'taken' || changes.length === 1) return this.#settle(changes, together);
      for (const change of changes) this.#settle([change], await this.#apply([change]));
    } catch (error) {
      for (const { settled } of changes) settled.reject(error); // those that are settled stay so
    }
  }

  #settle(changes: readonly Change[], verdict: Verdict): void {
    for (const change of changes) change.settled.resolve(this.#outcomeOf(change, verdict));
  }

  #outcomeOf({ id, spec }: Change, verdict: Verdict): EnsureOutcome {
    if (verdict.status === 'failed') return verdict;
    const { before, kernelComplaint } = verdict;
    if (kernelComplaint !== undefined && spec !== undefined && needsKernel(spec)) {
      return { status: 'failed', reason: 'KernelRefused', message: kernelComplaint };
    }
    const { netns } = this.#options;
    return {
      status: isEqual(before.get(idText(id)), spec) ? 'unchanged' : 'applied',
      where: `HAProxy ${this.#haproxy.pid ?? ''}${netns === undefined ? '' : ` in namespace ${netns}`}`,
      published: [],
    };
  }

  /** Makes before use, removes only after nothing uses it. */
  async #apply(changes: readonly Change[]): Promise<Verdict> {
    const { interfaceAddresses, routes, log, runDirectory } = this.#options;
    const { signal } = this.#lifetime;
    const before = this.#running;
    const next = withChanges(before, changes);
    try {
      await mkdir(runDirectory, { recursive: true, mode: 0o700 });
      await interfaceAddresses?.add(addressesOf(next), signal);
      const wanted = routesOf(next.values());
      await routes?.apply(routesDuring(routesOf(before.values()), wanted), signal);
      const { weightsPrefix } = haproxyFiles(runDirectory);
      const configuration = renderHaproxy({ specs: [...next.values()], ownAddresses: [], weightsPrefix });
      this.#given = next;
      const result = await this.#haproxy.apply(configuration, signal);
      if (result.status === 'rejected') return { status: 'failed', reason: 'HAProxyRejected', message: result.reason };
      if (result.status === 'applied') log.info('HAProxy took a new configuration', { loadBalancers: next.size });
      this.#running = next;
      await writeSpecs(specsFile(this.#options), [...next.values()]);
      const kernelComplaint = await this.#forward();
      this.#drain(addressesOf(before).filter((address) => !addressesOf(next).includes(address)));
      await routes?.apply(wanted, signal);
      await this.#sweep();
      return { status: 'taken', before, kernelComplaint };
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof DataplaneError)) throw error;
      return { status: 'failed', reason: 'HostRefused', message: error.message };
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
    follow().catch(() => undefined); // aborted, or told by `#exclusively`
  }

  #tell(change: ServerStateChange): void {
    const { clock, listener } = this.#options;
    const known = new Map([...this.#running, ...this.#given]);
    const { changes, concernsKernel } = healthNews(change, [...known.values()], clock.now());
    for (const one of changes) listener.onTargetChange(one);
    if (concernsKernel) this.#followHealth(followTime);
  }

  /** In the background: nobody else waits for it. */
  #drain(addresses: readonly IpAddress[]): void {
    if (this.#options.interfaceAddresses === undefined || addresses.length === 0) return;
    const { log } = this.#options;
    const drained = waitForDrain(addresses, this.#options, this.#lifetime.signal)
      .catch((error: unknown) => {
        if (!this.#lifetime.signal.aborted) log.warn('cannot tell whether connections have ended', { error });
      })
      .then(() => {
        for (const address of addresses) {
          if (this.#draining.get(address) === drained) this.#draining.delete(address);
        }
        return this.#exclusively(() => this.#sweep());
      })
      .catch(() => undefined); // told by `#exclusively`
    for (const address of addresses) this.#draining.set(address, drained);
  }

  /** Removes pool addresses that nothing uses, also those of an earlier controller. */
  async #sweep(): Promise<void> {
    const inUse = [...addressesOf(this.#running), ...this.#draining.keys()];
    await this.#options.interfaceAddresses?.removeOthers(inUse, this.#lifetime.signal);
  }
}

function specsFile({ runDirectory }: ProcessRuntimeOptions): string {
  return join(runDirectory, 'specs.json');
}

function withChanges(before: Specs, changes: readonly Change[]): Specs {
  const next = new Map(before);
  for (const { id, spec } of changes) {
    if (spec === undefined) next.delete(idText(id));
    else next.set(idText(id), spec);
  }
  return next;
}

function addressesOf(specs: Specs): readonly IpAddress[] {
  return [...specs.values()].flatMap(({ addresses }) => addresses);
}

async function untilAborted<T>(task: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([task, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
    aborted.promise.catch(() => undefined);
  }
}
