import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { ConfigError, HostError, type IpFamily, nodeName, UsageError } from '@switchyard/core';
import { hostAddresses, hostNumbers, maxNodes, podCidrs } from './address-plan.ts';
import { findCgroup2Mount, tryMakeCgroup } from './cgroup.ts';
import { destroyLab } from './destroy-lab.ts';
import type { Lab, LabHost, LabNode, LabOptions } from './lab.ts';
import { claimLabFolder, isAlive, processIdentity, readLabRecord } from './lab-record.ts';
import { listLabs } from './list-labs.ts';
import { checkLabName, labCgroup, labFolder, namespaceName } from './names.ts';
import { NamespaceHost } from './namespace-host.ts';
import { NamespaceLab } from './namespace-lab.ts';
import { type HostPlan, type NetworkPlan, renderNetwork } from './render-network.ts';
import { runProgram, runScript } from './run-program.ts';

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
  const make = (host: HostPlan): NamespaceHost | LabNode => {
    const base = new NamespaceHost({
      name: host.name,
      namespace: namespaceName(options.name, host.name),
      addresses: hostAddresses(host.number, options.ipFamilies),
      cgroup: cgroup === undefined ? undefined : `${cgroup}/${host.name}`,
      logFolder: `${folder}/logs`,
    });
    if (host.nodeIndex === undefined) return base;
    return Object.assign(base, {
      nodeName: nodeName(host.name),
      zone: zones[(host.nodeIndex - 1) % zones.length] ?? 'zone-a',
      podCidrs: podCidrs(host.nodeIndex, options.ipFamilies),
      cgroupPath: cgroup === undefined ? undefined : `${cgroup}/${host.name}`,
      bpffsPath: bpffs ? bpffsPath(folder, host.name) : undefined,
    });
  };
  const hosts: readonly LabHost[] = plan.hosts.map(make);
  return new NamespaceLab({ options, folder, limitations, hosts });
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
