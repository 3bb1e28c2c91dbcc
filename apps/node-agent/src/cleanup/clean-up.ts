import { HostError, ipFamilies } from '@switchyard/core';
import { allOfKubeProxy, iptablesPlaces, nothingUnwanted } from '@switchyard/netfilter/iptables';
import type { KernelFiles } from '@switchyard/host';
import { type BackendHost, registeredBackends } from '../backends.ts';
import { cleanBackend } from './backend-state.ts';
import { removePlace } from './iptables-place.ts';
import { kubeProxyPort, removeKubeProxyIpvs, removeKubeProxyRules } from './kube-proxy.ts';
import { removeBirthmark, thenBirthmark } from './left-rules.ts';
import { joinRemovals, nothingRemoved, type Removal, removalOf } from './removal.ts';
import { type PlaceWithoutIptables, refuseUnseenRules } from './tables.ts';

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
  removals.push(port === undefined ? await removeOwnChains(options, signal) : await handOver(options, port, signal));
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

/** Chains with kube-proxy's names belong to this agent only where its birthmark is; kube-proxy's chains stay. */
async function removeOwnChains({ backendHost, files }: CleanUpOptions, signal: AbortSignal): Promise<Removal> {
  const { tables } = backendHost;
  const removals: Removal[] = [];
  for (const place of iptablesPlaces(ipFamilies)) {
    const all = await removePlace(backendHost, place, (isOurs) => (isOurs ? allOfKubeProxy : nothingUnwanted), signal);
    const removal = await orElseNothing(all, { tables, files, place }, signal);
    removals.push(all.isOurs ? await thenBirthmark(removal, backendHost, place, signal) : removal);
  }
  return joinRemovals(removals);
}

/** Reports an unreadable place only if it may hold rules of this agent. */
async function orElseNothing(removal: Removal, unread: PlaceWithoutIptables, signal: AbortSignal): Promise<Removal> {
  if (removal.skipped.length === 0) return removal;
  const look = async (): Promise<Removal> => {
    await refuseUnseenRules(unread);
    return nothingRemoved;
  };
  return joinRemovals([{ ...removal, skipped: [] }, await removalOf(look, signal)]);
}

/**
 * Removes only the birthmark, for a roll-back to kube-proxy's iptables mode: the chains now belong to the kube-proxy that was
 * started after the agent.
 */
async function handOver({ backendHost, files }: CleanUpOptions, port: number, signal: AbortSignal): Promise<Removal> {
  const { tables } = backendHost;
  const removals: Removal[] = [];
  for (const place of iptablesPlaces(ipFamilies)) {
    const removal = await removeBirthmark(backendHost, place, signal);
    removals.push(await orElseNothing(removal, { tables, files, place }, signal));
  }
  const all = joinRemovals(removals);
  if (all.removed.length === 0) return all;
  const why = `something listens on port ${port}, as kube-proxy does, which uses them now`;
  return { ...all, kept: [...all.kept, `chains of iptables with kube-proxy's names: ${why}`] };
}
