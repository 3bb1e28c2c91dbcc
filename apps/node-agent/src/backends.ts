import type { EbpfHost } from '@switchyard/backend-ebpf';
import { ebpfTraits } from '@switchyard/backend-ebpf/traits';
import type { IptablesHost } from '@switchyard/backend-iptables';
import { iptablesTraits } from '@switchyard/backend-iptables/traits';
import type { NftablesHost } from '@switchyard/backend-nftables';
import { nftablesTraits } from '@switchyard/backend-nftables/traits';
import { type DataplaneTraits, InvariantError, type IpFamily } from '@switchyard/core';
import type { DataplaneBackendFactory } from '@switchyard/core/engine';
import type { IptablesVariant } from '@switchyard/netfilter/iptables';
import { cleanBackend, cleanLeftNftables, removeEbpfState, removeLeftEbpfState } from './cleanup/backend-state.ts';
import type { NftTables } from './cleanup/tables.ts';
import type { Removal } from './cleanup/removal.ts';

/** Access to this machine for all backends. Each backend uses the fields that it needs; clean-ups use `tables`. */
export type BackendHost = NftablesHost & IptablesHost & EbpfHost & { readonly tables: NftTables };

/** A host and the families to work on. */
export interface BackendPlace {
  readonly host: BackendHost;
  readonly ipFamilies: readonly IpFamily[];
}

/** One backend of the agent. `traits.name` is its --proxy-mode. */
export interface RegisteredBackend {
  readonly traits: DataplaneTraits;
  /** Imports the backend. A start loads only its own. */
  readonly load: () => Promise<DataplaneBackendFactory<BackendHost>>;
  /** Word in `Field.modes` of the settings that it reads. Default: `traits.kubeProxyMode`. */
  readonly settings?: string;
  /** It pins objects in bpffs, which the agent mounts before it opens. */
  readonly needsBpffs?: true;
  /**
   * Chooses the kernel's iptables to write. Only for the backend that writes kube-proxy's chains: clean-ups handle these by place,
   * together with kube-proxy's own, and not by `cleanup`.
   */
  readonly detectVariant?: (place: BackendPlace, signal: AbortSignal) => Promise<IptablesVariant>;
  /** Removes its state. Default: `cleanup` of the backend in each family. */
  readonly removeState?: {
    readonly always: RemoveState;
    /** At the start of another mode. Mostly there is no state to remove. */
    readonly atStart: RemoveState;
  };
}

/** Removes the state of a backend. Rejects only when aborted. */
export type RemoveState = (backend: RegisteredBackend, place: BackendPlace, signal: AbortSignal) => Promise<Removal>;

const registry: RegisteredBackend[] = [
  {
    traits: nftablesTraits,
    load: async () => (await import('@switchyard/backend-nftables')).nftablesBackend,
    removeState: { always: cleanBackend, atStart: cleanLeftNftables },
  },
  {
    traits: iptablesTraits,
    load: async () => (await import('@switchyard/backend-iptables')).iptablesBackend,
    detectVariant: variantFor,
  },
  {
    traits: ebpfTraits,
    load: async () => (await import('@switchyard/backend-ebpf')).ebpfBackend,
    settings: 'ebpf',
    needsBpffs: true,
    removeState: { always: removeEbpfState, atStart: removeLeftEbpfState },
  },
];

/** Every backend, in the order of dumps and clean-ups. */
export function registeredBackends(): readonly RegisteredBackend[] {
  return registry;
}

/** Adds a backend. To be called before the configuration is read. Throws `InvariantError` for a name that is taken. */
export function registerBackend(backend: RegisteredBackend): void {
  const { name } = backend.traits;
  if (registry.some(({ traits }) => traits.name === name)) {
    throw new InvariantError(`a backend ${name} is registered already`);
  }
  registry.push(backend);
}

/** The backend of a mode that the configuration accepted. */
export function backendOf(mode: string): RegisteredBackend {
  const found = registry.find(({ traits }) => traits.name === mode);
  if (found === undefined) throw new InvariantError(`there is no backend for --proxy-mode ${mode}`);
  return found;
}

/** Traits of the dataplane of a mode. */
export function traitsOf(mode: string): DataplaneTraits {
  return backendOf(mode).traits;
}

/** Returns the iptables variant for all families; `auto` is detected once. */
async function variantFor({ host, ipFamilies }: BackendPlace, signal: AbortSignal): Promise<IptablesVariant> {
  if (host.variant !== 'auto') return host.variant;
  const { detectVariant } = await import('@switchyard/backend-iptables');
  const { variant, reason } = await detectVariant(host.runner, ipFamilies, signal);
  host.logger.info('variant of iptables', { variant, reason });
  return variant;
}
