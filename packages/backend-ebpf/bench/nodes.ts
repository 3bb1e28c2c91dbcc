import { nftablesBackend } from '@switchyard/backend-nftables';
import { type DataplaneBackend } from '@switchyard/core/engine';
import { type ForwardingTable, noopLogger, seconds } from '@switchyard/core';
import { type LabHost, type LabNode } from '@switchyard/lab';
import { ebpfBackend } from '../src/index.ts';
import type { NorthSouth } from '../src/kernel/host.ts';
import { LinuxKernel } from '../src/kernel/programs/linux-kernel.ts';
import { clusterIp, endpointPort, servicePort } from './large-table.ts';
import { loadSocketLb } from './machine.ts';

/** Runs a program in a host of the lab. Throws when it fails. */
export async function runIn(host: LabHost, file: string, args: readonly string[], stdin = ''): Promise<string> {
  const result = await host.run(file, args, { stdin, timeout: seconds(300) });
  if (result.exitCode === 0) return result.stdout;
  throw new Error(`${file} ${args.join(' ')} in ${host.name}: ${result.stderr.slice(0, 500)}`);
}

/** Programs a node, and leaves it so. */
export type Load = (node: LabNode, table: ForwardingTable, folder: string) => Promise<void>;

async function applyTo(backend: DataplaneBackend, table: ForwardingTable): Promise<void> {
  const outcome = await backend.apply({ table, scope: { kind: 'full' } }, new AbortController().signal);
  if (outcome.status !== 'applied') throw new Error(`the bench was not applied: ${JSON.stringify(outcome)}`);
}

/** The eBPF backend as the agent opens it. */
export function loadEbpf(northSouth: NorthSouth): Load {
  return async (node, table) => {
    const { cgroupPath: cgroup, bpffsPath: bpffs } = node;
    if (cgroup === undefined || bpffs === undefined) throw new Error(`${node.name} has no cgroup2 or no bpffs`);
    const host = { ...hostOf(node), cgroup, bpffs, interfaces: [], northSouth, socketLb: 'all' } as const;
    await using backend = await ebpfBackend.open(host, 'IPv4', new AbortController().signal);
    await applyTo(backend, table);
  };
}

/** The socket programs over their maps, without a rule. */
export const loadSocketPrograms: Load = async ({ cgroupPath, bpffsPath }, table) => {
  if (cgroupPath === undefined || bpffsPath === undefined) throw new Error('the node has no cgroup2 or no bpffs');
  const options = {
    ipFamily: 'IPv4',
    cgroup: () => cgroupPath,
    bpffs: bpffsPath,
    socketLb: 'all',
    logger: noopLogger,
  } as const;
  await using kernel = new LinuxKernel(options);
  await loadSocketLb(kernel, table, new AbortController().signal);
};

/** The nftables backend as the agent opens it. */
export const loadNftables: Load = async (node, table) => {
  await using backend = await nftablesBackend.open(hostOf(node), 'IPv4', new AbortController().signal);
  await applyTo(backend, table);
};

/** Adds the rule by which a CNI hides addresses of pods from other networks. */
export const loadMasquerade: Load = async (node) => {
  const rule = 'ip saddr 10.244.0.0/16 ip daddr != 10.244.0.0/16 masquerade';
  const chain = `chain postrouting { type nat hook postrouting priority srcnat; ${rule}; }`;
  await runIn(node, 'nft', ['-f', '-'], `table ip cni { ${chain}; }`);
};

/** One load after another. */
export function inOrder(...loads: readonly Load[]): Load {
  return async (node, table, folder) => {
    for (const load of loads) await load(node, table, folder);
  };
}

function hostOf(node: LabNode): Parameters<typeof nftablesBackend.open>[0] {
  const netns = `/run/netns/${node.namespace}`;
  return { logger: noopLogger, netns };
}

/**
 * iptables as kube-proxy has it for one family and cluster IPs only: one rule for each Service, walked through in order. Chains of
 * Services that are not measured are left out: they get no traffic.
 */
export function loadIptables(services: number, pod: string): Load {
  return async (node) => {
    const middle = services >> 1;
    const lines = Array.from({ length: services }, (_, index) => {
      const target = index === middle ? 'KUBE-SVC-REAL' : 'KUBE-SVC-OTHER';
      return `-A KUBE-SERVICES -d ${clusterIp(index)}/32 -p tcp -m comment --comment "bench/s${index} cluster IP" -m tcp --dport ${servicePort} -j ${target}`;
    });
    const text = [
      '*nat',
      ...[
        'KUBE-SERVICES',
        'KUBE-SVC-REAL',
        'KUBE-SVC-OTHER',
        'KUBE-SEP-REAL',
        'KUBE-MARK-MASQ',
        'KUBE-POSTROUTING',
      ].map((name) => `:${name} - [0:0]`),
      '-A PREROUTING -j KUBE-SERVICES',
      '-A OUTPUT -j KUBE-SERVICES',
      '-A POSTROUTING -j KUBE-POSTROUTING',
      '-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN',
      '-A KUBE-POSTROUTING -j MASQUERADE --random-fully',
      '-A KUBE-MARK-MASQ -j MARK --or-mark 0x4000',
      '-A KUBE-SVC-REAL ! -s 10.244.0.0/16 -j KUBE-MARK-MASQ',
      '-A KUBE-SVC-REAL -j KUBE-SEP-REAL',
      `-A KUBE-SEP-REAL -s ${pod}/32 -j KUBE-MARK-MASQ`,
      `-A KUBE-SEP-REAL -p tcp -m tcp -j DNAT --to-destination ${pod}:${endpointPort}`,
      ...lines,
      'COMMIT',
      '',
    ].join('\n');
    await runIn(node, 'iptables-legacy-restore', [], text);
  };
}
