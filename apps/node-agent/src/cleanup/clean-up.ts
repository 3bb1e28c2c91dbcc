import { HostError, ipFamilies } from '@switchyard/core';
import {
  allOfKubeProxy,
  type IptablesPlace,
  iptablesPlaces,
  nothingUnwanted,
  type RemovalWish,
} from '@switchyard/netfilter/iptables';
import type { KernelFiles } from '@switchyard/host';
import { type BackendHost, registeredBackends } from '../backends.ts';
import { cleanBackend } from './backend-state.ts';
import { removePlace } from './iptables-place.ts';
import { kubeProxyPort, removeKubeProxyIpvs, removeKubeProxyRules } from './kube-proxy.ts';
import { birthmarkAlone, thenBirthmark } from './left-rules.ts';
import { joinRemovals, nothingRemoved, type Removal, removalOf } from './removal.ts';
import { refuseUnseenRules, type TablesOfKernel } from './tables.ts';

interface CleanUpOptions {
  readonly backendHost: BackendHost;
  readonly files: KernelFiles;
  /** Also removes the state of kube-proxy, in all of its modes. */
  readonly kubeProxy: boolean;
}

/**
 * Removes the state of all backends and versions from this network namespace, in both families regardless of what this host
 * supports today. Idempotent; a failed part does not stop the others.
 */
export async function cleanUp(options: CleanUpOptions, signal: AbortSignal): Promise<Removal> {
  const { backendHost, files, kubeProxy } = options;
  const removals: Removal[] = [];
  const port = kubeProxy ? undefined : kubeProxyPort(files);
  for (const backend of registeredBackends()) {
    if (backend.detectVariant !== undefined) continue; // its chains come next
    const remove = backend.removeState?.always ?? cleanBackend;
    removals.push(await remove(backend, { host: backendHost, ipFamilies }, signal));
  }
  removals.push(await removeOwnChains(options, port, signal));
  if (kubeProxy) {
    removals.push(await removeKubeProxyRules(backendHost, ipFamilies, signal));
    removals.push(await removalOf(() => removeKubeProxyIpvs({ runner: backendHost.runner, files }, signal), signal));
  }
  return joinRemovals(removals);
}

/** Returns the failures of a clean-up as one error that ends the process. The summary has the details. */
export function cleanUpFailed({ failures }: Removal): HostError {
  const message = `the clean-up is not complete: ${failures.length} of its parts failed, see above; it can be repeated`;
  return new HostError('cleanup.failed', message, { cause: new AggregateError(failures) });
}

/**
 * Chains with kube-proxy's names belong to this agent only where its birthmark is; kube-proxy's chains stay. With the `port` of
 * a kube-proxy it removes only the birthmark, for a roll-back to kube-proxy's iptables mode: the chains now belong to the
 * kube-proxy that was started after the agent.
 */
async function removeOwnChains(
  { backendHost, files }: CleanUpOptions,
  port: number | undefined,
  signal: AbortSignal,
): Promise<Removal> {
  const removals: Removal[] = [];
  const isHandOver = port !== undefined;
  const wish = (isOurs: boolean): RemovalWish =>
    isHandOver ? birthmarkAlone : isOurs ? allOfKubeProxy : nothingUnwanted;
  for (const place of iptablesPlaces(ipFamilies)) {
    const { isOurs, ...chains } = await removePlace(backendHost, place, wish, signal);
    const removal = await orElseNothing(chains, { tables: backendHost.tables, files }, place, signal);
    removals.push(isOurs && !isHandOver ? await thenBirthmark(removal, backendHost, place, signal) : removal);
  }
  const all = joinRemovals(removals);
  if (!isHandOver || all.removed.length === 0) return all;
  const why = `something listens on port ${port}, as kube-proxy does, which uses them now`;
  return { ...all, kept: [...all.kept, `chains of iptables with kube-proxy's names: ${why}`] };
}

/** Reports an unreadable place only if it may hold rules of this agent. */
async function orElseNothing(
  removal: Removal,
  access: TablesOfKernel,
  place: IptablesPlace,
  signal: AbortSignal,
): Promise<Removal> {
  if (removal.skipped.length === 0) return removal;
  const look = (): Promise<Removal> => refuseUnseenRules(access, place).then(() => nothingRemoved);
  return joinRemovals([{ ...removal, skipped: [] }, await removalOf(look, signal)]);
}
