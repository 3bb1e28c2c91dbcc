import { HostError, type IpFamily } from '@switchyard/core';
import type { KernelFiles } from '@switchyard/host';
import {
  allButForward,
  birthmarkChain,
  type IptablesPlace,
  iptablesPlaces,
  type IptablesVariant,
  nothingUnwanted,
  type RemovalWish,
} from '@switchyard/netfilter/iptables';
import { type BackendHost, backendOf, registeredBackends } from '../backends.ts';
import { cleanBackend } from './backend-state.ts';
import { type PlaceOutcome, type RuleAccess, removePlace } from './iptables-place.ts';
import { mayHaveOurChains } from './tables.ts';
import { removeNftTable } from './kube-proxy.ts';
import { joinRemovals, nothingRemoved, type Removal, removalOf } from './removal.ts';

interface LeftRulesOptions {
  readonly mode: string;
  /** Variant that the iptables mode writes; undefined in another mode. If it is unknown in that mode, no iptables is examined. */
  readonly variant: IptablesVariant | undefined;
  readonly kubeProxyRules: 'remove' | 'keep';
  readonly backendHost: BackendHost;
  readonly files: KernelFiles;
  readonly ipFamilies: readonly IpFamily[];
}

/** Removed rules of other modes and of kube-proxy. */
export interface LeftRules {
  /** Of this agent, in its other modes or in the other variant of iptables. */
  readonly ours: Removal;
  readonly kubeProxy: Removal;
}

/**
 * Removes the rules that translate beside the running mode: always those of this agent's other modes, and kube-proxy's if
 * configured. Removes nothing from the iptables variant that the mode writes, whose rules it adopted. Connections continue,
 * because conntrack holds their translation. Rejects only when aborted.
 */
export async function removeLeftRules(options: LeftRulesOptions, signal: AbortSignal): Promise<LeftRules> {
  const { mode, variant, kubeProxyRules, backendHost, files, ipFamilies } = options;
  const { tables } = backendHost;
  const ours: Removal[] = [];
  const kubeProxy: Removal[] = [];
  // Sequentially, because all removals need the kernel's single lock on rules.
  for (const backend of registeredBackends()) {
    if (backend.traits.name === mode || backend.detectVariant !== undefined) continue;
    const remove = backend.removeState?.atStart ?? cleanBackend;
    ours.push(await remove(backend, { host: backendHost, ipFamilies }, signal));
  }
  for (const ipFamily of kubeProxyRules === 'remove' ? ipFamilies : []) {
    kubeProxy.push(await removalOf(() => removeNftTable(tables, ipFamily), signal));
  }
  const writesChains = backendOf(mode).detectVariant !== undefined;
  for (const place of iptablesPlaces(ipFamilies)) {
    if (writesChains && (variant === undefined || place.variant === variant)) continue;
    if (!(await mayHaveOurChains({ tables, files }, place))) continue;
    const { isOurs, ...removal } = await removeFrom(place, options, signal);
    (isOurs ? ours : kubeProxy).push(removal);
  }
  return { ours: joinRemovals(ours), kubeProxy: joinRemovals(kubeProxy) };
}

async function removeFrom(
  place: IptablesPlace,
  { backendHost, kubeProxyRules }: LeftRulesOptions,
  signal: AbortSignal,
): Promise<PlaceOutcome> {
  const isAll = kubeProxyRules === 'remove';
  const wish = (isOurs: boolean): RemovalWish => (isOurs || isAll ? allButForward : nothingUnwanted);
  const { isOurs, ...removal } = await removePlace(backendHost, place, wish, signal);
  if (isOurs) return { isOurs, ...(await thenBirthmark(removal, backendHost, place, signal)) };
  // Rules that stay need not be readable.
  return { isOurs, ...(isAll ? removal : nothingRemoved) };
}

/** Removes the birthmark last, and only if all else was removed: a rest, also of a killed process, stays recognizable. */
export async function thenBirthmark(
  before: Removal,
  access: RuleAccess,
  place: IptablesPlace,
  signal: AbortSignal,
): Promise<Removal> {
  if (before.failures.length > 0) return before;
  return joinRemovals([before, await removePlace(access, place, () => birthmarkAlone, signal)]);
}

/** Removes only the birthmark. */
export const birthmarkAlone: RemovalWish = { isUnwanted: (chain) => chain === birthmarkChain };

/**
 * Returns the iptables variant with rules of this agent; undefined if there are none. Writes nothing. Rejects with `HostError` if it
 * found none and a place was unreadable.
 */
export async function ourVariant(
  access: RuleAccess,
  ipFamilies: readonly IpFamily[],
  signal: AbortSignal,
): Promise<IptablesVariant | undefined> {
  const failures: Error[] = [];
  for (const place of iptablesPlaces(ipFamilies)) {
    const read = await removePlace(access, place, () => nothingUnwanted, signal);
    if (read.isOurs) return place.variant;
    failures.push(...read.failures);
  }
  const [cause] = failures;
  if (cause === undefined) return undefined;
  const message = `cannot determine whether iptables holds rules of this agent: ${cause.message}`;
  throw new HostError('iptables.unread', message, { cause });
}
