import type { EbpfHost } from '@switchyard/backend-ebpf';
import type { IptablesHost } from '@switchyard/backend-iptables';
import type { NftablesHost } from '@switchyard/backend-nftables';
import type { IptablesVariant } from '@switchyard/host';
import { type DataplaneBackend, type DataplaneBackendFactory, HostError, type IpFamily } from '@switchyard/core';
import type { NftTables } from './cleanup/nft-tables.ts';
import type { ProxyMode } from './config/proxy-mode.ts';

/** The machine as every dataplane wants it: each takes what it needs. Clean-ups look at tables of nftables by name. */
export type BackendHost = NftablesHost & IptablesHost & EbpfHost & { readonly tables: NftTables };

/** Every dataplane by its --proxy-mode; loaded only when chosen. */
export const backends: Readonly<Record<ProxyMode, () => Promise<DataplaneBackendFactory<BackendHost>>>> = {
  ebpf: async () => (await import('@switchyard/backend-ebpf')).ebpfBackend,
  iptables: async () => (await import('@switchyard/backend-iptables')).iptablesBackend,
  nftables: async () => (await import('@switchyard/backend-nftables')).nftablesBackend,
};

/** Which backends are to be opened. */
export interface DataplaneWish {
  readonly mode: ProxyMode;
  readonly host: BackendHost;
  readonly ipFamilies: readonly IpFamily[];
  /** Done to a host that can run them, before they are opened. */
  readonly prepare?: () => Promise<void>;
}

/** The backends that program this node. */
export interface OpenDataplane {
  /** One per family. */
  readonly backends: readonly DataplaneBackend[];
  /** Which of the kernel's two iptables they write; undefined in another mode. */
  readonly variant: IptablesVariant | undefined;
}

/** One backend per family, after asking whether this host can run it. Rejects with `HostError` if not. */
export async function openBackends(wish: DataplaneWish, signal: AbortSignal): Promise<OpenDataplane> {
  const { factory, variant } = await checkBackend(wish, signal);
  await wish.prepare?.();
  // Not before: asking has loaded the connection tracking, of whose settings the host tells.
  const host = { ...wish.host, ...(variant === undefined ? {} : { variant }) };
  return { backends: await Promise.all(wish.ipFamilies.map((one) => factory.open(host, one, signal))), variant };
}

/** What is to be opened, on a host that can run it. No rule of the host is touched. Rejects with `HostError` if it cannot. */
export async function checkBackend(
  wish: DataplaneWish,
  signal: AbortSignal,
): Promise<Pick<OpenDataplane, 'variant'> & { readonly factory: DataplaneBackendFactory<BackendHost> }> {
  const { mode, host } = wish;
  const variant = mode === 'iptables' ? await variantFor(wish, signal) : undefined;
  const factory = await backends[mode]();
  const probe = await factory.probe({ ...host, ...(variant === undefined ? {} : { variant }) }, signal);
  if (probe.status === 'usable') return { factory, variant };
  throw new HostError('host.unusable', `this host cannot run --proxy-mode ${mode}: ${probe.reasons.join('; ')}`);
}

/** All families write the same variant, and it is looked for once. */
async function variantFor({ host, ipFamilies }: DataplaneWish, signal: AbortSignal): Promise<IptablesVariant> {
  if (host.variant !== 'auto') return host.variant;
  const { detectVariant } = await import('@switchyard/backend-iptables');
  const { variant, reason } = await detectVariant(host.runner, ipFamilies, signal);
  host.logger.info('variant of iptables', { variant, reason });
  return variant;
}
