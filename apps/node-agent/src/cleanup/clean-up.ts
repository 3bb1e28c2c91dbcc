import type { NftablesHost } from '@switchyard/backend-nftables';
import { HostError, type IpFamily, ipFamilies } from '@switchyard/core';
import { allOfKubeProxy, type KernelFiles } from '@switchyard/host';
import { backends } from '../backends.ts';
import { removeKubeProxyIpvs } from './kube-proxy-ipvs.ts';
import { removeKubeProxyRules } from './kube-proxy-rules.ts';
import { joinRemovals, nothingRemoved, type Removal, removalOf } from './removal.ts';

/** What is to be cleaned up. */
export interface CleanUpOptions {
  readonly backendHost: NftablesHost;
  readonly files: KernelFiles;
  /** Also what kube-proxy left, in all of its modes. */
  readonly kubeProxy: boolean;
}

/**
 * Removes what any backend of any version may have left in this network namespace, in both families whatever this host
 * speaks today. Idempotent; one part that fails does not keep the others from being done.
 */
export async function cleanUp(options: CleanUpOptions, signal: AbortSignal): Promise<Removal> {
  const { backendHost, files, kubeProxy } = options;
  const removals: Removal[] = [];
  for (const name of Object.keys(backends) as (keyof typeof backends)[]) {
    for (const ipFamily of ipFamilies) {
      removals.push(await removalOf(() => cleanBackend(name, { backendHost, ipFamily }, signal), signal));
    }
  }
  if (kubeProxy) {
    const { runner } = backendHost;
    removals.push(await removeKubeProxyRules({ runner, ipFamilies, wish: allOfKubeProxy }, signal));
    removals.push(await removalOf(() => removeKubeProxyIpvs({ runner, files }, signal), signal));
  }
  return joinRemovals(removals);
}

/** What a clean-up could not do, as one error that ends the process; the summary has the details. */
export function cleanUpFailed({ failures }: Removal): HostError {
  const message = `the clean-up is not complete: ${failures.length} of its parts failed, see above; it can be repeated`;
  return new HostError('cleanup.failed', message, { cause: new AggregateError(failures) });
}

interface BackendOfFamily {
  readonly backendHost: NftablesHost;
  readonly ipFamily: IpFamily;
}

/** Not probed: a host that cannot run a backend any more may have its rules all the same. */
async function cleanBackend(
  name: keyof typeof backends,
  { backendHost, ipFamily }: BackendOfFamily,
  signal: AbortSignal,
): Promise<Removal> {
  const factory = await backends[name]();
  await using backend = await factory.open(backendHost, ipFamily, signal);
  return { ...nothingRemoved, removed: await backend.cleanup(signal) };
}
