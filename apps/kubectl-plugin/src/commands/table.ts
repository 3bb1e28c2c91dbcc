import { askAgent } from '../access/ask.ts';
import { textTable } from '../text-table.ts';
import type { CommandContext, ExitStatus } from './context.ts';

interface EndpointView {
  readonly address: string;
  readonly port: number;
  readonly nodeName?: string;
  readonly usedBy: readonly string[];
}

interface ServiceView {
  readonly key: string;
  readonly status: { readonly kind: string };
  /** Absent, as the next, for a refused Service port that the kernel does not have. */
  readonly policies?: { readonly internal: string; readonly external: string };
  readonly endpoints?: readonly EndpointView[];
}

/** An agent's answer to `/debug/forwarding`. */
export interface ForwardingAnswer {
  readonly families: readonly {
    readonly ipFamily: string;
    readonly generation?: number;
    readonly services: readonly ServiceView[];
  }[];
}

/** `table SERVICE`: each node's forwarding, and where nodes differ. */
export async function tableCommand(context: CommandContext, signal: AbortSignal): Promise<ExitStatus> {
  const { config, findAgents, print } = context;
  const [name = ''] = config.operands;
  const service = name.includes('/') ? name : `${config.namespace ?? 'default'}/${name}`;
  using found = await findAgents(config.node === undefined ? undefined : [config.node]);
  const path = `/debug/forwarding?service=${encodeURIComponent(service)}`;
  const answers = await Promise.all(
    found.agents.map(async (agent) => ({
      node: agent.node,
      families: (await askAgent<ForwardingAnswer>(agent, path, { signal })).families,
    })),
  );
  const differences = differencesOf(answers);
  if (config.isJson) print(`${JSON.stringify({ service, nodes: answers, differences }, undefined, 2)}\n`);
  else print(tableText(service, answers, differences));
  return differences.length === 0 ? 0 : 2;
}

interface NodeAnswer {
  readonly node: string;
  readonly families: ForwardingAnswer['families'];
}

function tableText(service: string, answers: readonly NodeAnswer[], differences: readonly string[]): string {
  const rows = answers.flatMap(({ node, families }) =>
    families.flatMap(({ ipFamily, generation, services }) =>
      services.map((service) => [
        node,
        ipFamily,
        service.key,
        service.status.kind,
        `${generation ?? '-'}`,
        countText(service, 'Cluster'),
        countText(service, 'Local'),
      ]),
    ),
  );
  if (rows.length === 0) return `no node knows the Service ${service}\n`;
  const table = textTable(['NODE', 'FAMILY', 'SERVICE', 'STATUS', 'GENERATION', 'CLUSTER', 'LOCAL'], rows);
  return `${table}${differences.length === 0 ? '\nall nodes agree\n' : `\n${differences.join('\n')}\n`}`;
}

/** Endpoints that a policy may use, of all; `-` for a policy that the Service does not have. */
function countText({ endpoints = [], policies }: ServiceView, policy: string): string {
  if (policies !== undefined && !Object.values(policies).includes(policy)) return '-';
  return `${endpoints.filter(({ usedBy }) => usedBy.includes(policy)).length}/${endpoints.length}`;
}

/**
 * Differences in what all nodes share: the Service ports, their status, and their known endpoints. Usable ones may differ by policy
 * and topology.
 */
export function differencesOf(answers: readonly NodeAnswer[]): readonly string[] {
  const byPort = new Map<string, Map<string, string[]>>();
  for (const { node, families } of answers) {
    for (const { ipFamily, services } of families) {
      for (const { key, status, endpoints = [] } of services) {
        const places = endpoints.map(({ address, port }) => `${address} ${port}`).toSorted();
        const view = `${status.kind}, endpoints ${places.join(', ') || 'none'}`;
        const views = byPort.get(`${key} ${ipFamily}`) ?? new Map<string, string[]>();
        byPort.set(`${key} ${ipFamily}`, views);
        views.set(view, [...(views.get(view) ?? []), node]);
      }
    }
  }
  return [...byPort].flatMap(([port, views]) => {
    const nodes = new Set([...views.values()].flat());
    const without = answers.map(({ node }) => node).filter((node) => !nodes.has(node));
    const missing = without.length === 0 ? [] : [`${port}: not on ${without.join(', ')}`];
    if (views.size < 2) return missing;
    return [...missing, ...[...views].map(([view, on]) => `${port}: on ${on.join(', ')}: ${view}`)];
  });
}
