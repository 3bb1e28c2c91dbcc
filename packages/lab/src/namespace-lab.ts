import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import {
  ConfigError,
  HostError,
  type IpAddress,
  type IpFamily,
  ipFamilyOf,
  nodeName,
  UsageError,
} from '@switchyard/core';
import {
  hostAddresses,
  hostNumbers,
  type HostPlan,
  maxNodes,
  type NetworkPlan,
  nextPodNumber,
  podAddresses,
  podInterface,
  podCidrs,
  renderNetwork,
  renderPod,
  switchName,
} from './network-plan.ts';
import { findCgroup2Mount, killCgroup, removeCgroup, tryMakeCgroup } from './cgroup.ts';
import { destroyLab, listLabs, removeNamespaces } from './destroy-lab.ts';
import type { Lab, LabHost, LabNode, LabOptions, LabPod, PerFamily } from './lab.ts';
import { checkHostName, checkLabName, labCgroup, labDiskFolder, labFolder, namespaceName } from './names.ts';
import { namespaceHost } from './namespace-host.ts';
import { runProgram, runScript } from './run-program.ts';
import { claimLabFolder, isAlive, processIdentity, readLabRecord } from './lab-record.ts';

interface PodRecord {
  readonly host: LabPod;
  readonly nodeInterface: string;
  readonly cgroup: string | undefined;
  removal: Promise<void> | undefined;
}

/** A lab owned by this process, with its pods. */
class NamespaceLab implements Lab {
  readonly name: string;
  readonly ipFamilies: readonly IpFamily[];
  readonly nodes: readonly LabNode[];
  readonly client: LabHost;
  readonly loadBalancer: LabHost;
  readonly apiServer: LabHost;
  readonly folder: string;
  readonly diskFolder: string;
  readonly limitations: readonly string[];
  readonly hosts: readonly LabHost[];
  readonly #podsByName = new Map<string, PodRecord>();
  readonly #addressesTaken = new Set<IpAddress>();
  readonly #lastPodNumbers = new Map<LabNode, number>();
  #podsMade = 0;
  #disposal: Promise<void> | undefined;

  /** `hosts` are in the order of `planHosts`. */
  constructor(options: LabOptions, folder: string, limitations: readonly string[], hosts: readonly LabHost[]) {
    const [client, loadBalancer, apiServer, ...nodes] = hosts as [LabHost, LabHost, LabHost, ...LabNode[]];
    this.name = options.name;
    this.ipFamilies = options.ipFamilies;
    this.folder = folder;
    this.diskFolder = labDiskFolder(this.name);
    this.limitations = limitations;
    this.hosts = hosts;
    this.client = client;
    this.loadBalancer = loadBalancer;
    this.apiServer = apiServer;
    this.nodes = nodes;
  }

  async addPod(node: LabNode, name: string, address?: PerFamily<IpAddress>): Promise<LabPod> {
    this.#checkPod(name);
    const addresses = address ?? this.#nextAddresses(node);
    this.#podsMade += 1;
    const number = this.#podsMade;
    const nodeInterface = podInterface(number);
    const namespace = namespaceName(this.name, name);
    const cgroup = node.cgroupPath === undefined ? undefined : `${node.cgroupPath}/${name}`;
    const logFolder = `${this.folder}/logs`;
    const host: LabPod = { ...namespaceHost({ name, namespace, addresses, cgroup, logFolder }), node };
    this.#podsByName.set(name, { host, nodeInterface, cgroup, removal: undefined });
    for (const taken of Object.values(addresses)) this.#addressesTaken.add(taken);
    try {
      if (cgroup !== undefined) await tryMakeCgroup(cgroup);
      const plan = { lab: this.name, name, ipFamilies: this.ipFamilies, addresses, node, number };
      await runScript(`add pod ${name} to ${node.name} of lab ${this.name}`, renderPod(plan));
      return host;
    } catch (error) {
      await this.removePod(host);
      throw error;
    }
  }

  async removePod(pod: LabPod): Promise<void> {
    const record = this.#podsByName.get(pod.name);
    if (record === undefined || record.host !== pod) return;
    record.removal ??= this.#remove(record);
    await record.removal;
  }

  async routeToNode(addresses: readonly IpAddress[], node: LabNode): Promise<void> {
    const lines = addresses.map((address) => {
      const family = ipFamilyOf(address);
      const length = family === 'IPv4' ? 32 : 128;
      return `route replace ${address}/${length} via ${node.addresses[family]}`;
    });
    const batch = ['<<BATCH', ...lines, 'BATCH'].join('\n');
    const scripts = [this.client, this.loadBalancer].map((host) => `ip -n ${host.namespace} -batch - ${batch}`);
    await runScript(`route ${addresses.join(', ')} to ${node.name} of lab ${this.name}`, scripts.join('\n'));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposal ??= destroyLab(this.name);
    await this.#disposal;
  }

  #checkPod(name: string): void {
    checkHostName(name);
    const isReserved = name === switchName || this.hosts.some((host) => host.name === name);
    if (!isReserved && !this.#podsByName.has(name)) return;
    throw new UsageError('lab.pod', `cannot add pod ${name} to lab ${this.name}: the name is in use there`);
  }

  #nextAddresses(node: LabNode): PerFamily<IpAddress> {
    const index = this.nodes.indexOf(node) + 1;
    if (index === 0) throw new UsageError('lab.pod', `${node.name} is not a node of lab ${this.name}`);
    const number = nextPodNumber(this.#lastPodNumbers.get(node), (candidate) =>
      Object.values(podAddresses(index, candidate, this.ipFamilies)).some((ip) => this.#addressesTaken.has(ip)),
    );
    this.#lastPodNumbers.set(node, number);
    return podAddresses(index, number, this.ipFamilies);
  }

  /** Deletes the veth pair first, which takes effect at once; the kernel removes a namespace later, in the background. */
  async #remove(record: PodRecord): Promise<void> {
    const { host, nodeInterface, cgroup } = record;
    if (cgroup !== undefined) await killCgroup(cgroup);
    const remove = `ip -n ${host.node.namespace} link delete ${nodeInterface} 2>/dev/null || true`;
    await runScript(`unplug pod ${host.name} of lab ${this.name}`, remove);
    await removeNamespaces([host.namespace]);
    if (cgroup !== undefined) await removeCgroup(cgroup);
    for (const address of Object.values(host.addresses)) this.#addressesTaken.delete(address);
    this.#podsByName.delete(host.name);
  }
}

const zones = ['zone-a', 'zone-b', 'zone-c'];

/**
 * Builds a lab owned by this process. First removes the remains of a dead lab of the same name; a running lab causes a
 * `HostError` (code `lab.taken`) that names its owner. If a step fails or `signal` aborts, the unfinished lab is removed.
 * Needs root, iproute2 and util-linux.
 */
export async function createLab(options: LabOptions, signal: AbortSignal): Promise<Lab> {
  checkOptions(options);
  await checkMachine(options.ipFamilies);
  await removeRemains(options.name);
  const owner = await processIdentity(process.pid);
  if (owner === undefined) throw new HostError('lab.proc', 'cannot read /proc/self/stat: is /proc mounted?');
  const { name, ipFamilies, nodes } = options;
  await claimLabFolder({ name, owner, createdAt: new Date().toISOString(), ipFamilies, nodes });
  try {
    signal.throwIfAborted();
    const plan: NetworkPlan = { lab: name, ipFamilies, hosts: planHosts(nodes) };
    await runScript(`build the network of lab ${name}`, renderNetwork(plan));
    signal.throwIfAborted();
    return await assemble(options, plan);
  } catch (error) {
    await destroyLab(name);
    throw error;
  }
}

/** All hosts of a lab with `nodes` nodes, servers first. */
export function planHosts(nodes: number): readonly HostPlan[] {
  return [
    { name: 'client', role: 'outside', number: hostNumbers.client },
    { name: 'lb', role: 'server', number: hostNumbers.loadBalancer },
    { name: 'api', role: 'server', number: hostNumbers.apiServer },
    ...Array.from({ length: nodes }, (_, index): HostPlan => ({
      name: `node${index + 1}`,
      role: 'node',
      number: hostNumbers.firstNode + index,
      nodeIndex: index + 1,
    })),
  ];
}

function checkOptions(options: LabOptions): void {
  checkLabName(options.name);
  if (!Number.isInteger(options.nodes) || options.nodes < 1 || options.nodes > maxNodes) {
    throw new UsageError('lab.nodes', `a lab has 1 to ${maxNodes} nodes, not ${options.nodes}`);
  }
  if (options.ipFamilies.length === 0) throw new UsageError('lab.families', 'a lab needs at least one IP family');
}

/** Throws `ConfigError` that names what this machine lacks and how to get it: root, programs, a kernel with IPv6. */
export async function checkMachine(ipFamilies: readonly IpFamily[]): Promise<void> {
  if (process.getuid?.() !== 0) {
    throw new ConfigError(
      'lab.root',
      'the lab makes network namespaces and needs root; run it as root, e.g. with sudo',
    );
  }
  const needed = { ip: 'iproute2', nsenter: 'util-linux', mount: 'mount', umount: 'mount' };
  const script = Object.keys(needed).map((program) => `command -v ${program} >/dev/null || echo ${program}`);
  const result = await runProgram('sh', ['-c', script.join('\n')]);
  const missing = result.stdout.split('\n').filter(Boolean) as readonly (keyof typeof needed)[];
  if (missing.length > 0) {
    const packages = [...new Set(missing.map((program) => needed[program]))].join(' ');
    throw new ConfigError(
      'lab.tools',
      `the lab needs ${missing.join(', ')}; install with: apt-get install ${packages}`,
    );
  }
  if (ipFamilies.includes('IPv6') && !existsSync('/proc/sys/net/ipv6')) {
    throw new ConfigError('lab.ipv6', 'this kernel has no IPv6; choose an IPv4 lab');
  }
}

async function removeRemains(name: string): Promise<void> {
  const record = await readLabRecord(name);
  if (record !== undefined && (await isAlive(record.owner))) return; // the claim refuses and names the owner
  const isThere = (await listLabs()).some((lab) => lab.name === name);
  if (isThere) await destroyLab(name);
}

/** Creates cgroups, BPF file systems and host objects for an existing network. */
async function assemble(options: LabOptions, plan: NetworkPlan): Promise<Lab> {
  const folder = labFolder(options.name);
  const limitations: string[] = [];
  const cgroup = await makeCgroups(options.name, plan, limitations);
  const bpffs = await mountBpf(folder, plan, limitations);
  const make = (host: HostPlan): LabHost | LabNode => {
    const base = namespaceHost({
      name: host.name,
      namespace: namespaceName(options.name, host.name),
      addresses: hostAddresses(host.number, options.ipFamilies),
      cgroup: cgroup === undefined ? undefined : `${cgroup}/${host.name}`,
      logFolder: `${folder}/logs`,
    });
    if (host.nodeIndex === undefined) return base;
    return {
      ...base,
      nodeName: nodeName(host.name),
      zone: zones[(host.nodeIndex - 1) % zones.length] ?? 'zone-a',
      podCidrs: podCidrs(host.nodeIndex, options.ipFamilies),
      cgroupPath: cgroup === undefined ? undefined : `${cgroup}/${host.name}`,
      bpffsPath: bpffs ? bpffsPath(folder, host.name) : undefined,
    };
  };
  const hosts: readonly LabHost[] = plan.hosts.map(make);
  return new NamespaceLab(options, folder, limitations, hosts);
}

async function makeCgroups(lab: string, plan: NetworkPlan, limitations: string[]): Promise<string | undefined> {
  const mount = await findCgroup2Mount();
  if (mount === undefined) {
    limitations.push('no cgroup v2 is mounted: nodes have no cgroup of their own (needed by the eBPF backend only)');
    return undefined;
  }
  const folder = labCgroup(mount, lab);
  for (const host of plan.hosts) {
    const problem = await tryMakeCgroup(`${folder}/${host.name}`);
    if (problem === undefined) continue;
    limitations.push(`cgroups cannot be made below ${mount} (${problem}): nodes have no cgroup of their own`);
    return undefined;
  }
  return folder;
}

async function mountBpf(folder: string, plan: NetworkPlan, limitations: string[]): Promise<boolean> {
  const paths = plan.hosts.filter((host) => host.role === 'node').map((host) => bpffsPath(folder, host.name));
  for (const path of paths) await mkdir(path, { recursive: true });
  const script = paths.map((path) => `mount -t bpf bpf ${path}`).join(' && ');
  const result = await runProgram('sh', ['-c', script]);
  if (result.exitCode === 0) return true;
  limitations.push(`no BPF file system can be mounted (${result.stderr.trim()}): nodes have none`);
  return false;
}

function bpffsPath(folder: string, host: string): string {
  return `${folder}/${host}/bpf`;
}
