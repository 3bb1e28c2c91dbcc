import {
  type Clock,
  ConfigError,
  HostError,
  type IpAddress,
  ipFamilies,
  type Logger,
  messageOf,
} from '@switchyard/core';
import { type CommandRunner, isProgramMissing } from '@switchyard/host';
import { needsKernel } from '../spec/kernel-ports.ts';
import type { LoadBalancerSpec } from '../spec/load-balancer-spec.ts';
import type { TargetHealth } from '../spec/target-health.ts';
import { newKernelSettings } from './kernel-settings.ts';
import { assertNotMachines, netnsPath, runnerInNetns } from './own-namespace.ts';
import { ProxiedForwarding } from './proxied-forwarding.ts';
import { proxiedTable } from './proxied-table.ts';
import { renderTransparent } from './transparent/render-transparent.ts';
import { transparentPorts } from './transparent/transparent-port.ts';
import { loadTransparent } from './transparent/transparent-table.ts';

/** Where the kernel is to forward, and what that takes. */
export interface KernelForwarderOptions {
  /** Runs programs here: `nft`; for a `netns` also `nsenter`, `cat` and `tee`. */
  readonly runner: CommandRunner;
  /** Name under /run/netns; undefined: our own namespace. */
  readonly netns: string | undefined;
  /** Where clients and targets are. */
  readonly interfaceName: string;
  /**
   * `check` is for our containers: the namespace is theirs alone, and forwarding is on since they started. `set` is for lab hosts: it is
   * switched on, and a namespace that is the machine's, or not a named one, is refused and never looked into.
   */
  readonly forwarding: 'set' | 'check';
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Wanted forwarding by the kernel. */
export interface KernelRequest {
  /** All load balancers of the namespace; TCP ports of the proxy path are passed over. What is not named is removed. */
  readonly specs: readonly LoadBalancerSpec[];
  readonly health: TargetHealth;
  /** Addresses of the namespace's own on which UDP and SCTP ports of the proxy path answer too: where published ports arrive. */
  readonly ownAddresses: readonly IpAddress[];
}

/**
 * Forwarding by the kernel: UDP and SCTP with address translation, and the transparent path. What it wrote stays when it is
 * disposed, and the next one, of any process, continues from there.
 */
export interface KernelForwarder extends AsyncDisposable {
  /**
   * Makes the kernel match. Level-triggered, idempotent; only differences are written. Call it again when a spec or the health of
   * a target has changed, never twice at once. Rejects with `ConfigError`, `HostError`; what ran before then runs on.
   */
  apply(request: KernelRequest, signal: AbortSignal): Promise<'applied' | 'unchanged'>;
}

/** Opens nothing yet. */
export function newKernelForwarder(options: KernelForwarderOptions): KernelForwarder {
  return new NamespaceForwarder(options);
}

class NamespaceForwarder implements KernelForwarder {
  readonly #options: KernelForwarderOptions;
  readonly #runner: CommandRunner;
  readonly #proxied: readonly ProxiedForwarding[];
  /** The kernel holds no own rules. */
  #isEmpty = false;

  constructor(options: KernelForwarderOptions) {
    const { netns } = options;
    this.#options = options;
    this.#runner = runnerInNetns(options.runner, netns);
    const path = netns === undefined ? undefined : netnsPath(netns);
    const settings = newKernelSettings(options.runner, netns);
    const inside = { ...options, runner: this.#runner, netns: path, settings };
    this.#proxied = ipFamilies.map((family) => new ProxiedForwarding(inside, family));
  }

  async apply(request: KernelRequest, signal: AbortSignal): Promise<'applied' | 'unchanged'> {
    const isNothing = request.specs.every((spec) => !needsKernel(spec));
    if (isNothing && (this.#isEmpty || !(await this.#mayLook()))) return 'unchanged';
    if (!isNothing) await this.#assertOurs();
    this.#isEmpty = false;
    const results = await Promise.allSettled([
      this.#applyProxied(request, signal),
      this.#applyTransparent(request, signal),
    ]);
    signal.throwIfAborted();
    const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
    if (isNothing && errors.length > 0 && errors.every(isProgramMissing)) return 'unchanged'; // nothing can have been written
    if (errors.length > 0) throw combined(errors);
    this.#isEmpty = isNothing;
    return results.some((result) => result.status === 'fulfilled' && result.value) ? 'applied' : 'unchanged';
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const family of this.#proxied) await family[Symbol.asyncDispose]();
  }

  /** One family after the other: they share a table. The one that has no ports comes last, for it may take the table away. */
  async #applyProxied(request: KernelRequest, signal: AbortSignal): Promise<boolean> {
    const parts = this.#proxied.map((family) => ({ family, table: proxiedTable(request, family.ipFamily) }));
    parts.sort((a, b) => b.table.services.size - a.table.services.size);
    let hasWritten = false;
    for (const { family, table } of parts) hasWritten = (await family.apply(table, signal)) || hasWritten;
    return hasWritten;
  }

  #applyTransparent(request: KernelRequest, signal: AbortSignal): Promise<boolean> {
    const ports = transparentPorts(request);
    const wanted = ports.length === 0 ? undefined : renderTransparent(ports, this.#options.interfaceName);
    return loadTransparent(this.#runner, wanted, signal);
  }

  /** Whether rules in the namespace can be the controller's: in the machine's namespace, the same tables are a node agent's. */
  async #mayLook(): Promise<boolean> {
    try {
      await this.#assertOurs();
      return true;
    } catch (error) {
      if (error instanceof ConfigError) return false;
      throw error;
    }
  }

  async #assertOurs(): Promise<void> {
    if (this.#options.forwarding === 'check') return;
    const what = "UDP and SCTP ports and the transparent path would change the machine's own packet filter";
    await assertNotMachines(this.#options.netns, what);
  }
}

function combined(errors: readonly unknown[]): unknown {
  if (errors.length === 1) return errors[0];
  return new HostError('lb.kernel', errors.map(messageOf).join('; '), { cause: new AggregateError(errors) });
}
