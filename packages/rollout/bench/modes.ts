import { seconds } from '@switchyard/core';
import type { AgentMode, LabNode, LabProcess } from '@switchyard/lab';
import type { BenchLab } from './bench-lab.ts';
import type { Peer } from './peers/peer.ts';

/** One way to program the kernel: of the agent, or of another proxy. */
export interface Mode {
  readonly name: string;
  /** Of another proxy, instead of the agent. */
  readonly start?: Peer['start'];
  /** Default: `nftables`. */
  readonly proxyMode?: AgentMode;
  /** Further flags of the agent. */
  readonly args: readonly string[];
  /** The agent; default: that of this checkout. */
  readonly program?: string;
  /** Takes every rule and program out of the node's kernel. */
  flush(benchLab: Pick<BenchLab, 'node' | 'startAgent'>): Promise<void>;
}

/** As kube-proxy was measured: its default of a second would be all that one sees of steady change. */
const quick = '--iptables-min-sync-period=10ms';

/** The default mode. */
export const nftables: Mode = {
  name: 'nftables',
  args: [],
  flush: ({ node }) => expectZero(node, 'nft', ['flush', 'ruleset']),
};

/** Both iptables of the kernel. */
export const iptables: Readonly<Record<'nft' | 'legacy', Mode>> = {
  nft: {
    name: 'iptables (nft)',
    proxyMode: 'iptables',
    args: ['--switchyard-iptables-variant=nft', quick],
    flush: ({ node }) => expectZero(node, 'nft', ['flush', 'ruleset']),
  },
  legacy: {
    name: 'iptables (legacy)',
    proxyMode: 'iptables',
    args: ['--switchyard-iptables-variant=legacy', quick],
    flush: ({ node }) => expectZero(node, 'iptables-legacy-restore', [], emptyTables),
  },
};

/** With programs at the uplink where the kernel can. */
export const ebpf: Mode = {
  name: 'ebpf',
  proxyMode: 'ebpf',
  args: [],
  flush: ({ node, startAgent }) => cleanUp(node, startAgent({ proxyMode: 'ebpf', args: ['--cleanup'] })),
};

const modes: Readonly<Record<string, Mode>> = { nftables, ebpf, iptables: iptables.nft };

/** The mode that a user names with `--mode`. Throws `Error` for any other name. */
export function modeOf(name: string): Mode {
  const mode = modes[name];
  if (mode !== undefined) return mode;
  throw new Error(`--mode ${name}: must be one of ${Object.keys(modes).join(', ')}`);
}

/** Tens of thousands of chains take their time. */
const flushTimeout = seconds(180);

/** Waits for an agent that was started with `--cleanup`, then removes all rules. */
export async function cleanUp(node: LabNode, cleaner: LabProcess): Promise<void> {
  const status = await cleaner.ended;
  if (status !== 0) throw new Error(`the clean-up on ${node.name} ended with ${status}; see ${cleaner.logFile}`);
  await flushRules(node);
}

/** Also the chains of iptables' nft variant. */
export async function flushRules(node: LabNode): Promise<void> {
  const { exitCode, stderr } = await node.run('nft', ['flush', 'ruleset'], { timeout: flushTimeout });
  if (exitCode !== 0) throw new Error(`nft flush ruleset on ${node.name}: ${stderr}`);
}

/** Without `--noflush` every chain of these tables goes. */
const emptyTables = ['nat', 'filter', 'mangle'].map((table) => `*${table}\nCOMMIT\n`).join('');

async function expectZero(node: LabNode, file: string, args: readonly string[], stdin?: string): Promise<void> {
  const result = await node.run(file, args, stdin === undefined ? {} : { stdin });
  if (result.exitCode !== 0) throw new Error(`${file}: ${result.stderr}`);
}
