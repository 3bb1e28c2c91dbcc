import { HostError, type IpFamily } from '@switchyard/core';
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
import { cleanBackend } from './clean-backend.ts';
import { type PlaceOutcome, type RuleAccess, removePlace } from './iptables-place.ts';
import { removeNftTable } from './kube-proxy-rules.ts';
import { joinRemovals, nothingRemoved, type Removal, removalOf } from './removal.ts';

/** What others may have left, as seen by a mode that runs. */
export interface LeftRulesOptions {
  readonly mode: string;
  /** Where the iptables mode writes; undefined in another mode. Where that is not known, no iptables is looked at. */
  readonly variant: IptablesVariant | undefined;
  readonly kubeProxyRules: 'remove' | 'keep';
  readonly backendHost: BackendHost;
  readonly ipFamilies: readonly IpFamily[];
}

/** What became of what others left, by whose it was. */
export interface LeftRules {
  /** Of this agent, in its other modes or in the other variant of iptables. */
  readonly ours: Removal;
  readonly kubeProxy: Removal;
}

/**
 * Removes what translates beside the mode that runs: what this agent made in its other modes, always, and kube-proxy's if
 * asked for. Where the iptables mode writes nothing is removed: what is there was adopted. Flows go on: their translation
 * is the connection tracking's. Never throws but for an abort.
 */
export async function removeLeftRules(options: LeftRulesOptions, signal: AbortSignal): Promise<LeftRules> {
  const { mode, variant, kubeProxyRules, backendHost, ipFamilies } = options;
  const { tables } = backendHost;
  const ours: Removal[] = [];
  const kubeProxy: Removal[] = [];
  // One after another: all of them contend for the kernel's one lock on rules.
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
  // Rules that are to stay need not be readable.
  return { isOurs, ...(isAll ? removal : nothingRemoved) };
}

/** The birthmark goes last, and only if all else could go: what is left, also by a killed process, is then still known as ours. */
export async function thenBirthmark(
  before: Removal,
  access: RuleAccess,
  place: IptablesPlace,
  signal: AbortSignal,
): Promise<Removal> {
  if (before.failures.length > 0) return before;
  return joinRemovals([before, await removeBirthmark(access, place, signal)]);
}

/** Removes the birthmark alone. */
export async function removeBirthmark(access: RuleAccess, place: IptablesPlace, signal: AbortSignal): Promise<Removal> {
  return await removePlace(access, place, () => ({ isUnwanted: (chain) => chain === birthmarkChain }), signal);
}

/**
 * In which of the kernel's two iptables rules of this agent are; undefined for none. Writes nothing. Rejects with `HostError` when
 * none were found and a place could not be read: they may be there.
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
  const message = `cannot tell whether rules of this agent are in iptables: ${cause.message}`;
  throw new HostError('iptables.unread', message, { cause });
}
