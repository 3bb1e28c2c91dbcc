import type { Clock, IpAddress, Logger } from '@switchyard/core';
import type { CommandRunner } from '@switchyard/host';
import type { LoadBalancerSpec } from '../spec/load-balancer-spec.ts';
import type { TargetHealth } from '../spec/target-health.ts';

/** Where the kernel is to forward, and what that takes. */
export interface KernelForwarderOptions {
  /** Runs programs here; they enter `netns` by themselves. `nft`, `ip`, `cat` and `tee` must be there, `nsenter` for a `netns`. */
  readonly runner: CommandRunner;
  /** Name under /run/netns; undefined: our own namespace, which then must not be the machine's. */
  readonly netns: string | undefined;
  /** Where clients and targets are. */
  readonly interfaceName: string;
  /** `set` switches forwarding on in the namespace, for lab hosts; `check` wants to find it on, as in our containers. */
  readonly forwarding: 'set' | 'check';
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What the kernel is to do. */
export interface KernelRequest {
  /** All load balancers of the namespace; TCP ports of the proxy path are passed over. What is not named is removed. */
  readonly specs: readonly LoadBalancerSpec[];
  readonly health: TargetHealth;
  /** Addresses of the namespace's own on which UDP and SCTP ports of the proxy path answer too: where published ports arrive. */
  readonly ownAddresses: readonly IpAddress[];
}

/**
 * Forwarding by the kernel: UDP and SCTP with address translation, and the transparent path. What it wrote stays when it is
 * disposed, and the next one, in whatever process, goes on from there.
 */
export interface KernelForwarder extends AsyncDisposable {
  /**
   * Makes the kernel match. Level-triggered, idempotent; only differences are written. Call it again when a spec or the health of
   * a target has changed, never twice at once. Rejects with `ConfigError`, `HostError`; what ran before then runs on.
   */
  apply(request: KernelRequest, signal: AbortSignal): Promise<'applied' | 'unchanged'>;
}
