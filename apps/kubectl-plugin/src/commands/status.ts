import { messageOf } from '@switchyard/core';
import { askAgent } from '../access/ask.ts';
import { textTable } from '../text-table.ts';
import type { CommandContext, ExitStatus } from './context.ts';

interface NodeStatus {
  readonly node: string;
  readonly mode: string;
  /** Explains another proxy, and programs nothing. */
  readonly isObserver: boolean;
  readonly version: string;
  readonly families: readonly {
    readonly ipFamily: string;
    readonly generation?: number;
    readonly lastApplied?: string;
    readonly pendingMs?: number;
    readonly failure?: { readonly text: string };
    readonly services: number;
    readonly failedServices: number;
  }[];
  readonly conntrack?: { readonly entries: number; readonly limit?: number; readonly full: number };
}

/** `status`: one line per node and family. */
export async function statusCommand(
  { config, findAgents, clock, print, warn }: CommandContext,
  signal: AbortSignal,
): Promise<ExitStatus> {
  using found = await findAgents(config.node === undefined ? undefined : [config.node]);
  const statuses: NodeStatus[] = [];
  await Promise.all(
    found.agents.map(async (agent) => {
      try {
        statuses.push(await askAgent<NodeStatus>(agent, '/debug/status', { signal }));
      } catch (error) {
        warn(messageOf(error));
      }
    }),
  );
  statuses.sort((a, b) => (a.node < b.node ? -1 : 1));
  print(config.isJson ? `${JSON.stringify(statuses, undefined, 2)}\n` : statusText(statuses, clock.now()));
  const isWell = statuses.every(({ families }) =>
    families.every(({ failure, failedServices }) => failure === undefined && failedServices === 0),
  );
  return isWell && statuses.length === found.agents.length ? 0 : 2;
}

function statusText(statuses: readonly NodeStatus[], now: number): string {
  const rows = statuses.flatMap(({ node, mode, isObserver, version, families, conntrack }) =>
    families.map((family) => [
      node,
      isObserver ? `${mode} (observer)` : mode,
      version,
      family.ipFamily,
      String(family.services),
      family.lastApplied === undefined ? 'never' : `${ageText(now - Date.parse(family.lastApplied))} ago`,
      family.pendingMs === undefined ? '-' : `${family.pendingMs} ms`,
      family.failure === undefined
        ? family.failedServices === 0
          ? '-'
          : `${family.failedServices} Services`
        : 'the last apply',
      conntrack === undefined ? '-' : fillText(conntrack),
    ]),
  );
  return textTable(
    ['NODE', 'MODE', 'VERSION', 'FAMILY', 'SERVICES', 'APPLIED', 'PENDING', 'FAILED', 'CONNTRACK'],
    rows,
  );
}

function fillText({ entries, limit, full }: NonNullable<NodeStatus['conntrack']>): string {
  const share = limit === undefined ? String(entries) : `${((100 * entries) / limit).toFixed(1)}%`;
  return full === 0 ? share : `${share}, ${full} dropped`;
}

/** As kubectl's AGE: the largest unit. */
function ageText(time: number): string {
  const all = Math.max(0, Math.round(time / 1000));
  if (all < 120) return `${all}s`;
  if (all < 7200) return `${Math.floor(all / 60)}m`;
  return all < 172_800 ? `${Math.floor(all / 3600)}h` : `${Math.floor(all / 86_400)}d`;
}
