import { dataplaneNamed } from '@switchyard/scenarios';
import { readLogFile, readSyncs } from '../rollout/read-logs.ts';
import type { Proxies } from '../rollout/rollout-setup.ts';
import type { RunSettings } from '../run-record.ts';
import { programPath } from './programs.ts';
import type { Experiment } from './experiment.ts';

/** The node agents, one per node. Disposing stops them; what they programmed stays until the next ones take it over. */
export interface Agents extends Proxies, AsyncDisposable {}

/** Starts an agent on every node and waits until all are healthy. */
export async function startAgents(
  experiment: Experiment,
  settings: Pick<RunSettings, 'proxyMode' | 'terminatingFallback' | 'timeScale'>,
  signal: AbortSignal,
): Promise<Agents> {
  const args = [
    `--switchyard-terminating-fallback=${settings.terminatingFallback ? 'on' : 'off'}`,
    // kube-proxy's default of a second is a duration like the others.
    ...(dataplaneNamed(settings.proxyMode).defaultMinSyncPeriod === 'kubeProxy'
      ? [`--iptables-min-sync-period=${Math.round(1000 * settings.timeScale)}ms`]
      : []),
  ];
  const started = await experiment.cluster.startAgents(
    { proxyMode: settings.proxyMode, args, program: programPath('switchyard-agent') },
    signal,
  );
  return {
    programs: started,
    syncs: () =>
      started
        .flatMap(({ logFile }, index) => readSyncs(readLogFile(logFile), experiment.lab.nodes[index]?.name ?? ''))
        .sort((a, b) => a.at - b.at),
    [Symbol.asyncDispose]: async () => {
      await Promise.all(started.map((agent) => agent.stop()));
    },
  };
}
