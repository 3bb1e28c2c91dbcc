import { type IpAddress, type IpFamily, ipFamilyOf, UsageError } from '@switchyard/core';
import { nextPodNumber, podAddresses } from './address-plan.ts';
import { killCgroup, removeCgroup, tryMakeCgroup } from './cgroup.ts';
import { destroyLab, removeNamespaces } from './destroy-lab.ts';
import type { Lab, LabHost, LabNode, LabOptions, LabPod, PerFamily } from './lab.ts';
import { checkHostName, labDiskFolder, namespaceName } from './names.ts';
import { NamespaceHost } from './namespace-host.ts';
import { renderPod, switchName } from './render-network.ts';
import { runScript } from './run-program.ts';

/** Parts built by `createLab`. */
export interface NamespaceLabParts {
  readonly options: LabOptions;
  readonly folder: string;
  readonly limitations: readonly string[];
  readonly hosts: readonly LabHost[];
}

interface PodRecord {
  readonly host: NamespaceHost & LabPod;
  readonly nodeInterface: string;
  readonly cgroup: string | undefined;
  removal: Promise<void> | undefined;
}

/** A lab owned by this process, with its pods. */
export class NamespaceLab implements Lab {
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

  constructor(parts: NamespaceLabParts) {
    const byName = (name: string): LabHost => {
      const host = parts.hosts.find((candidate) => candidate.name === name);
      if (host === undefined) throw new UsageError('lab.host', `lab ${parts.options.name} has no host ${name}`);
      return host;
    };
    this.name = parts.options.name;
    this.ipFamilies = parts.options.ipFamilies;
    this.folder = parts.folder;
    this.diskFolder = labDiskFolder(this.name);
    this.limitations = parts.limitations;
    this.hosts = parts.hosts;
    this.client = byName('client');
    this.loadBalancer = byName('lb');
    this.apiServer = byName('api');
    this.nodes = parts.hosts.filter((host): host is LabNode => 'podCidrs' in host);
  }

  async addPod(node: LabNode, name: string, address?: PerFamily<IpAddress>): Promise<LabPod> {
    this.#checkPod(name);
    const addresses = address ?? this.#nextAddresses(node);
    this.#podsMade += 1;
    const nodeInterface = `pod${this.#podsMade}`;
    const namespace = namespaceName(this.name, name);
    const cgroup = node.cgroupPath === undefined ? undefined : `${node.cgroupPath}/${name}`;
    const base = new NamespaceHost({ name, namespace, addresses, cgroup, logFolder: `${this.folder}/logs` });
    const host = Object.assign(base, { node });
    this.#podsByName.set(name, { host, nodeInterface, cgroup, removal: undefined });
    for (const taken of Object.values(addresses)) this.#addressesTaken.add(taken);
    try {
      if (cgroup !== undefined) await tryMakeCgroup(cgroup);
      const plan = { lab: this.name, name, ipFamilies: this.ipFamilies, addresses, node, nodeInterface };
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
