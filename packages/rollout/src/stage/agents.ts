import type { LabProcess } from '@switchyard/lab';
import type { RunSettings } from '../run-record.ts';
import { programPath } from './programs.ts';
import type { Stage } from './stage.ts';

/** The node agents, one per node. Disposing stops them; what they programmed stays until the next ones take it over. */
export interface Agents extends AsyncDisposable {
  readonly byNode: ReadonlyMap<string, LabProcess>;
}

/** Starts an agent on every node and waits until all are healthy. */
export async function startAgents(
  stage: Stage,
  settings: Pick<RunSettings, 'proxyMode' | 'terminatingFallback' | 'timeScale'>,
  signal: AbortSignal,
): Promise<Agents> {
  const args = [
    `--switchyard-terminating-fallback=${settings.terminatingFallback ? 'on' : 'off'}`,
    // The iptables mode's default is a second, which is a duration like the others.
    ...(settings.proxyMode === 'iptables'
      ? [`--iptables-min-sync-period=${Math.round(1000 * settings.timeScale)}ms`]
      : []),
  ];
  const started = await stage.cluster.startAgents(
    { proxyMode: settings.proxyMode, args, program: programPath('switchyard-agent') },
    signal,
  );
  return {
    byNode: new Map(started.map((agent, index) => [stage.lab.nodes[index]?.name ?? '', agent])),
    [Symbol.asyncDispose]: async () => {
      await Promise.all(started.map((agent) => agent.stop()));
    },
  };
}
