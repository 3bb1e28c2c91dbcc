import { mkdir, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { assertNever, type IpFamily, ipFamilies, millis, systemClock } from '@switchyard/core';
import type { LabNode, LabProcess } from '@switchyard/lab';
import {
  clusterCidrs,
  type ClusterObject,
  clusterObjects,
  firstState,
  type Scenario,
  type ScenarioDetection,
} from '../../src/index.ts';
import type { LabMode } from './lab-mode.ts';

const program = fileURLToPath(new URL('../../../../apps/node-agent/bin/switchyard-agent', import.meta.url));
const patience = 20_000;

/**
 * The real node agent on a lab node, fed by one manifest file that is replaced as a whole.
 *
 * Each replacement also replaces the marker, a Service without endpoints and with a new name each time. So
 * every replacement changes something in both families, and the agent's debug line `applied services`
 * names the marker as soon as the kernel has all of it.
 */
export class LabAgent implements AsyncDisposable {
  readonly #node: LabNode;
  readonly #folder: string;
  #process: LabProcess | undefined;
  #flags: readonly string[] = [];
  #mode: LabMode | undefined;
  #replacements = 0;
  /** How often the agent was started. */
  starts = 0;

  private constructor(node: LabNode, folder: string) {
    this.#node = node;
    this.#folder = folder;
  }

  static async create(node: LabNode, folder: string): Promise<LabAgent> {
    await mkdir(folder, { recursive: true });
    return new LabAgent(node, folder);
  }

  /**
   * Makes the agent run with the scenario's flags and with nothing but the marker in its cluster; in NodeCIDR mode also the
   * Nodes, without which it does not begin.
   */
  async reset(scenario: Scenario, mode: LabMode, signal: AbortSignal): Promise<void> {
    const flags = [...mode.flags(this.#node), ...flagsOf(scenario, this.#folder)];
    const isRunning = this.#process !== undefined && flags.join(' ') === this.#flags.join(' ');
    if (!isRunning) {
      await this.kill();
      const isByNode = scenario.agent.detectLocal.kind === 'nodeCIDR';
      const objects = clusterObjects(scenario, firstState(scenario));
      await this.#write(isByNode ? objects.filter(({ kind }) => kind === 'Node') : []);
      if (this.#mode !== mode) await this.#cleanUp(mode);
      this.#mode = mode;
      this.#flags = flags;
      await this.start(signal);
    } else await this.deliver([], signal);
  }

  /** Replaces the cluster and waits until the kernel of both families has it. */
  async deliver(objects: readonly ClusterObject[], signal: AbortSignal): Promise<void> {
    await this.#write(objects);
    await this.#applied(signal);
  }

  /** Starts the agent and waits until it has applied what is in the folder. */
  async start(signal: AbortSignal): Promise<void> {
    this.starts += 1;
    this.#process = this.#node.spawn(program, this.#flags, { logName: 'agent', env: this.#environment });
    await this.#applied(signal);
  }

  /** SIGKILL. What it left in the kernel stays. */
  async kill(): Promise<void> {
    await this.#process?.stop(millis(0));
    this.#process = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** Nothing of one mode is left for the next: what an agent does with the rules of another is not the scenarios' business. */
  async #cleanUp(next: LabMode): Promise<void> {
    const options = { env: this.#environment, timeout: millis(patience) };
    const done = await this.#node.run(program, ['--cleanup', ...next.flags(this.#node)], options);
    if (done.exitCode !== 0) throw new Error(`the agent could not clean up: ${done.stderr}`);
  }

  /** Others on this machine are not waited for. */
  get #environment(): Readonly<Record<string, string>> {
    return { XTABLES_LOCKFILE: `${this.#folder}/.xtables.lock` };
  }

  async #write(objects: readonly ClusterObject[]): Promise<void> {
    this.#replacements += 1;
    const items = [...objects, marker(markerName(this.#replacements))];
    const hidden = `${this.#folder}/.next`;
    await writeFile(hidden, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
    await rename(hidden, `${this.#folder}/cluster.json`);
  }

  async #applied(signal: AbortSignal): Promise<void> {
    const running = this.#process;
    if (running === undefined) throw new Error('the agent is not running');
    const wanted = markerName(this.#replacements);
    const missing = new Set<IpFamily>(ipFamilies);
    const until = systemClock.monotonic() + patience;
    await using log = await open(running.logFile, 'r');
    const isEnded = { status: undefined as number | string | undefined };
    void running.ended.then((status) => (isEnded.status = status));
    let rest = '';
    for (;;) {
      const { buffer, bytesRead } = await log.read(Buffer.alloc(65_536), 0, 65_536);
      const lines = (rest + buffer.toString('utf8', 0, bytesRead)).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) for (const family of appliedBy(line, wanted)) missing.delete(family);
      if (missing.size === 0) return;
      if (bytesRead > 0) continue;
      if (isEnded.status !== undefined || systemClock.monotonic() > until) {
        const state = isEnded.status === undefined ? `runs, for ${patience} ms` : `has ended (${isEnded.status})`;
        const text = await readFile(running.logFile, 'utf8');
        throw new Error(
          `the agent ${state} without applying ${wanted} for ${[...missing].join()}:\n${text.slice(-3000)}`,
        );
      }
      await systemClock.sleep(millis(10), signal);
    }
  }
}

function appliedBy(line: string, wanted: string): readonly IpFamily[] {
  if (!line.includes('"applied services"') || !line.includes(wanted)) return [];
  const { ipFamily, upserted } = JSON.parse(line) as {
    readonly ipFamily: IpFamily;
    readonly upserted: readonly string[];
  };
  return upserted.some((key) => key.split(':')[0] === `scenarios/${wanted}`) ? [ipFamily] : [];
}

function markerName(replacement: number): string {
  return `marker-${replacement}`;
}

function marker(name: string): ClusterObject {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'scenarios', name },
    spec: {
      type: 'ClusterIP',
      clusterIP: '10.96.255.1',
      clusterIPs: ['10.96.255.1', 'fd00:10:96::ff01'],
      ipFamilies,
      ports: [{ port: 9, protocol: 'TCP' }],
    },
  };
}

/** The agent flags that correspond to a scenario's `agent`, whatever the mode. */
function flagsOf(scenario: Scenario, folder: string): readonly string[] {
  const { detectLocal, masqueradeAll, localhostNodePorts, terminatingFallback } = scenario.agent;
  return [
    `--switchyard-manifests=${folder}`,
    '--hostname-override=node1',
    '--logging-format=json',
    '--conntrack-max-per-core=0', // it is the whole machine's
    '--oom-score-adj=0',
    ...detectionFlags(detectLocal),
    ...(masqueradeAll ? ['--masquerade-all'] : []),
    ...nodePortFlags(scenario.agent),
    `--iptables-localhost-nodeports=${localhostNodePorts}`,
    `--switchyard-terminating-fallback=${terminatingFallback}`,
    '--healthz-bind-address=0.0.0.0:10256',
    '-v=4',
  ];
}

function nodePortFlags({ nodePortAddresses: given }: Scenario['agent']): readonly string[] {
  if (given === 'default') return [];
  if (given === 'primary') return ['--nodeport-addresses=primary'];
  // A list of one family leaves the other open.
  return [`--nodeport-addresses=${(given.length > 0 ? given : ['0.0.0.0/0', '::/0']).join(',')}`];
}

function detectionFlags(detectLocal: ScenarioDetection): readonly string[] {
  switch (detectLocal.kind) {
    case 'none':
      return [];
    case 'clusterCIDR':
      return [`--cluster-cidr=${clusterCidrs.IPv4},${clusterCidrs.IPv6}`];
    case 'nodeCIDR':
      return ['--detect-local-mode=NodeCIDR'];
    case 'bridgeInterface':
      return ['--detect-local-mode=BridgeInterface', `--pod-bridge-interface=${detectLocal.name}`];
    case 'interfaceNamePrefix':
      return ['--detect-local-mode=InterfaceNamePrefix', `--pod-interface-name-prefix=${detectLocal.prefix}`];
    default:
      return assertNever(detectLocal);
  }
}
