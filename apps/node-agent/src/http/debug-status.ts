import { readFileSync } from 'node:fs';
import { version } from '../version.ts';
import { type DebugState, familySummary, optional } from './debug-state.ts';

/** `/debug/status`: what an operator compares between nodes. */
export async function statusAnswer(state: DebugState): Promise<Readonly<Record<string, unknown>>> {
  const { readConntrackState } = await import('@switchyard/drops');
  const conntrack = readConntrackState(readText);
  const { families } = state.status();
  return {
    node: state.nodeName,
    mode: state.mode,
    isObserver: state.proxyLag > 0,
    version,
    families: state.ipFamilies.map((ipFamily) => ({
      ...familySummary(state, ipFamily),
      services: state.tables().get(ipFamily)?.services.size ?? 0,
      failedServices: families.get(ipFamily)?.failedServices.size ?? 0,
    })),
    ...optional('conntrack', conntrack),
  };
}

/** A kernel file as text; undefined if it is absent, for example without connection tracking. */
export function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
