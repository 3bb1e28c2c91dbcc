import { mkdir, writeFile } from 'node:fs/promises';
import { dataplaneNamed } from '@switchyard/scenarios';
import { messageOf, seconds } from '@switchyard/core';
import { loadBalancerLabel, nodeNames } from '../cell.ts';
import { type CellCommand, commandText } from '../run/shell.ts';
import { type CellContext, kubectl } from './cell-context.ts';
import { controllerName } from './load-balancer.ts';

/** One thing to write down. */
interface Look {
  /** File below `diagnostics`. */
  readonly file: string;
  readonly command: Omit<CellCommand, 'timeout'>;
}

const timeout = seconds(60);
/** Limit of all commands together, whose lanes run side by side: a cluster without answers must not cost an hour. */
const allTogether = seconds(480);

/**
 * Writes diagnostics: the nodes' logs, rules and connection tracking, the agents' state, events and pods, the load balancers. Never
 * rejects: the file of a failed command has its error. Returns the folder.
 */
export async function writeDiagnostics(context: CellContext, signal: AbortSignal): Promise<string> {
  const folder = `${context.folder}/diagnostics`;
  const { shell, cluster, clock } = context;
  if (!shell.isDry) await mkdir(folder, { recursive: true });
  const began = clock.monotonic();
  const logs = ['export', 'logs', `${folder}/kind`, '--name', cluster];
  const lanes: readonly (readonly Look[])[] = [
    [{ file: 'kind-export-logs.txt', command: { file: 'kind', args: logs } }],
    clusterLooks(context),
    ...nodeNames(cluster).map((node) => nodeLooks(context, node)),
    loadBalancerLooks(context),
  ];
  const runLane = async (looks: readonly Look[]): Promise<void> => {
    for (const { file, command } of looks) {
      if (signal.aborted || clock.monotonic() - began > allTogether) return;
      const text = await lookAt(context, command, signal);
      if (!shell.isDry) await writeFile(`${folder}/${file}`, `$ ${commandText(command)}\n${text}\n`);
    }
  };
  await Promise.all(lanes.map(runLane));
  await runLane(await serviceLooks(context, signal));
  return folder;
}

/** The containers that our controller made for Services. */
async function serviceLooks(context: CellContext, signal: AbortSignal): Promise<readonly Look[]> {
  if (context.cell.loadBalancer === 'none') return [];
  const filter = `label=${loadBalancerLabel}=${context.cluster}`;
  const args = ['ps', '--all', '--filter', filter, '--format', '{{.Names}}'];
  const names = await lookAt(context, { file: 'docker', args }, signal);
  return names
    .split('\n')
    .filter((name) => name.startsWith('switchyard-lb-'))
    .map((name) => ({ file: `${name}.log`, command: { file: 'docker', args: ['logs', name] } }));
}

async function lookAt(
  { shell }: CellContext,
  command: Omit<CellCommand, 'timeout'>,
  signal: AbortSignal,
): Promise<string> {
  try {
    const { exitCode, stdout, stderr } = await shell.run({ ...command, timeout }, signal);
    return [...(exitCode === 0 ? [] : [`exited with ${exitCode}`]), stdout, stderr].filter(Boolean).join('\n');
  } catch (error) {
    return messageOf(error);
  }
}

function clusterLooks(context: CellContext): readonly Look[] {
  const ask = (file: string, ...args: readonly string[]): Look => ({ file, command: kubectl(context, ...args) });
  const agents = ['-n', 'kube-system', '-l', 'app.kubernetes.io/name=switchyard'];
  return [
    ask('events.txt', 'get', 'events', '-A', '--sort-by=.metadata.creationTimestamp'),
    ask('objects.txt', 'get', 'nodes,pods,daemonsets,deployments,services,endpointslices', '-A', '-o', 'wide'),
    ask('services.yaml', 'get', 'services,endpointslices,nodes', '-A', '-o', 'yaml'),
    ask('pods.txt', 'describe', 'pods', '-n', 'kube-system'),
    ask('agent.log', 'logs', ...agents, '--all-containers', '--prefix', '--tail=2000'),
    ask('agent-before.log', 'logs', ...agents, '--all-containers', '--prefix', '--previous', '--tail=500'),
  ];
}

/** Commands inside the node, which also work when the API server does not answer. */
function nodeLooks({ cell, cluster }: CellContext, node: string): readonly Look[] {
  const name = node.slice(cluster.length + 1);
  const inside = (what: string, ...args: readonly string[]): Look => ({
    file: `${name}-${what}`,
    command: { file: 'docker', args: ['exec', node, ...args] },
  });
  const agent = (path: string): readonly string[] => [
    'curl',
    '-sS',
    '--max-time',
    '30',
    `http://localhost:10249${path}`,
  ];
  const rules = dataplaneNamed(cell.backend).metricSets.includes('rules')
    ? [inside('iptables.txt', 'iptables-save', '-c'), inside('ip6tables.txt', 'ip6tables-save', '-c')]
    : [];
  return [
    inside('dump.txt', ...agent('/debug/dump')),
    inside('forwarding.json', ...agent('/debug/forwarding')),
    inside('metrics.txt', ...agent('/metrics')),
    inside('ruleset.txt', 'nft', 'list', 'ruleset'),
    ...rules,
    inside('conntrack.txt', 'conntrack', '-L', '-o', 'extended'),
    inside('addresses.txt', 'ip', '-details', 'address'),
    inside('routes.txt', 'ip', 'route', 'show', 'table', 'all'),
  ];
}

function loadBalancerLooks({ cell, cluster }: CellContext): readonly Look[] {
  const docker = (file: string, ...args: readonly string[]): Look => ({ file, command: { file: 'docker', args } });
  const containers = docker('containers.txt', 'ps', '--all', '--no-trunc', '--filter', `name=${cluster}`);
  if (cell.loadBalancer === 'none') return [containers];
  return [containers, docker('lb-controller.log', 'logs', controllerName(cluster))];
}
