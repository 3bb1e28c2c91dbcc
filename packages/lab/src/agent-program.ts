import { access, constants, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { ConfigError, HostError, ipFamilies, millis, systemClock } from '@switchyard/core';
import { clusterCidrs } from './network-plan.ts';
import type { Lab, LabNode, LabProcess } from './lab.ts';
import { createProber } from './prober.ts';

/**
 * Values of the node agent's `--proxy-mode`. The lab runs the agent as a program and knows no backend; the agent's tests compare the
 * list with its registry.
 */
export const agentModes = ['nftables', 'iptables', 'ebpf'] as const;
/** A value of the node agent's `--proxy-mode`. */
export type AgentMode = (typeof agentModes)[number];
/** Mode of agents started without `proxyMode`. */
export const defaultAgentMode: AgentMode = 'nftables';

/** Options of a node agent. */
export interface AgentOptions {
  /** Default nftables. `ebpf` needs a node with a cgroup and a BPF file system of its own. */
  readonly proxyMode?: AgentMode;
  /** Further flags; they come last and override the others. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Default: this repository's `apps/node-agent/bin/switchyard-agent`. */
  readonly program?: string;
}

const repositoryAgent = fileURLToPath(new URL('../../../apps/node-agent/bin/switchyard-agent', import.meta.url));
/** kube-proxy's healthz port. */
const healthPort = 10_256;

/** Starts the node agent in `node` with the flags a DaemonSet would give it. */
export function startAgent(node: LabNode, kubeconfig: string, options: AgentOptions = {}): LabProcess {
  const families = ipFamilies.filter((family) => node.addresses[family] !== undefined);
  const bindAddress = families.includes('IPv4') ? `0.0.0.0:${healthPort}` : `[::]:${healthPort}`;
  const args = [
    `--kubeconfig=${kubeconfig}`,
    `--hostname-override=${node.nodeName}`,
    ...proxyModeFlags(node, options.proxyMode ?? defaultAgentMode),
    '--logging-format=json',
    `--cluster-cidr=${families.map((family) => clusterCidrs[family]).join(',')}`,
    `--healthz-bind-address=${bindAddress}`,
    // The settings belong to the machine, not to a network namespace, and labs share the machine.
    '--conntrack-max-per-core=0',
    '--conntrack-min=0',
    '--oom-score-adj=0',
    ...(options.args ?? []),
  ];
  const program = options.program ?? repositoryAgent;
  return node.spawn(program, args, { ...(options.env === undefined ? {} : { env: options.env }), logName: 'agent' });
}

/**
 * Returns the flags that set an agent's mode. eBPF programs attach to the node's own cgroup and are pinned in the node's own
 * file system, never the machine's. Throws `HostError` if the node has no cgroup or BPF file system.
 */
export function proxyModeFlags(node: LabNode, mode: AgentMode): readonly string[] {
  const flag = `--proxy-mode=${mode}`;
  const { cgroupPath, bpffsPath } = node;
  // Every mode removes leftovers of the eBPF mode: those of its own node, never the machine's.
  if (mode !== 'ebpf') return [flag, ...(bpffsPath === undefined ? [] : [`--switchyard-ebpf-bpffs=${bpffsPath}`])];
  if (cgroupPath === undefined || bpffsPath === undefined) {
    const missing = cgroupPath === undefined ? 'cgroup v2 directory' : 'BPF file system';
    throw new HostError(
      'lab.ebpf',
      `cannot run an agent with ${flag} on ${node.name}: the lab could not give it a ${missing}`,
    );
  }
  return [flag, `--switchyard-ebpf-cgroup=${cgroupPath}`, `--switchyard-ebpf-bpffs=${bpffsPath}`];
}

/** Throws `ConfigError` unless the repository's node agent has been built. */
export async function checkAgent(): Promise<void> {
  const isThere = await access(repositoryAgent, constants.X_OK).then(
    () => true,
    () => false,
  );
  if (isThere) return;
  throw new ConfigError('lab.agent', `there is no node agent at ${repositoryAgent}; build it with ./dev build`);
}

/**
 * Waits until each node's `/healthz` answers 200: its agent has applied the API server's state. `agents` are in the order
 * of the nodes. Rejects with the end of an agent's log if the agent ends or is not healthy after 60 s.
 */
export async function waitForAgents(lab: Lab, agents: readonly LabProcess[], signal: AbortSignal): Promise<void> {
  await using prober = await createProber(lab.client, signal);
  const until = systemClock.monotonic() + 60_000;
  const wait = async (node: LabNode, agent: LabProcess | undefined): Promise<void> => {
    let end: number | string | undefined;
    void agent?.ended.then((status) => (end = status));
    const address = node.addresses.IPv4 ?? node.addresses.IPv6 ?? '';
    for (;;) {
      const result = await prober.probe({ protocol: 'http', address, port: healthPort, path: '/healthz' });
      const isAnswered = result.status === 'answered';
      if (isAnswered && result.httpStatus === 200) return;
      const health = isAnswered ? `/healthz answers ${result.httpStatus}` : `/healthz: ${result.status}`;
      if (end !== undefined || systemClock.monotonic() > until) {
        const what = end === undefined ? `is not healthy after 60 s (${health})` : `has ended with ${end}`;
        const tail = await tailOf(agent);
        throw new HostError('lab.agent', `the agent of ${node.name} ${what}; its log ends with:\n${tail}`);
      }
      await systemClock.sleep(millis(50), signal);
    }
  };
  await Promise.all(lab.nodes.map((node, index) => wait(node, agents[index])));
}

async function tailOf(agent: LabProcess | undefined): Promise<string> {
  if (agent === undefined) return '(no log)';
  return (await readFile(agent.logFile, 'utf8')).trim().split('\n').slice(-5).join('\n');
}
