import { HostError } from '@switchyard/core';
import type { DataplaneBackend, DataplaneBackendFactory } from '@switchyard/core/engine';
import type { IptablesVariant } from '@switchyard/netfilter/iptables';
import { type BackendHost, backendOf, type BackendPlace } from './backends.ts';

interface DataplaneRequest extends BackendPlace {
  readonly mode: string;
  /** Called after a successful probe, before the backends are opened. */
  readonly prepare?: () => Promise<void>;
}

/** The backends that program this node. */
export interface OpenDataplane {
  /** One per family. */
  readonly backends: readonly DataplaneBackend[];
  /** Variant of iptables that they write; undefined in other modes. */
  readonly variant: IptablesVariant | undefined;
}

/** Opens one backend per family after a probe. Rejects with `HostError` if this host cannot run the mode. */
export async function openBackends(request: DataplaneRequest, signal: AbortSignal): Promise<OpenDataplane> {
  const { factory, variant } = await checkBackend(request, signal);
  await request.prepare?.();
  // Only now, because the probe loads conntrack, whose settings the host reads.
  const host = { ...request.host, ...(variant === undefined ? {} : { variant }) };
  return { backends: await Promise.all(request.ipFamilies.map((one) => factory.open(host, one, signal))), variant };
}

/** Probes the host and returns the factory of the mode. Changes no rule. Rejects with `HostError` if the host cannot run it. */
export async function checkBackend(
  request: DataplaneRequest,
  signal: AbortSignal,
): Promise<Pick<OpenDataplane, 'variant'> & { readonly factory: DataplaneBackendFactory<BackendHost> }> {
  const { mode, host } = request;
  const { detectVariant, load } = backendOf(mode);
  const variant = await detectVariant?.(request, signal);
  const factory = await load();
  const probe = await factory.probe({ ...host, ...(variant === undefined ? {} : { variant }) }, signal);
  if (probe.status === 'usable') return { factory, variant };
  throw new HostError('host.unusable', `this host cannot run --proxy-mode ${mode}: ${probe.reasons.join('; ')}`);
}
