import type { DataplaneMode } from '@switchyard/core';
import { type Lab, type LabNode, proxyModeFlags } from '@switchyard/lab';
import type { BackendHarness } from '../../src/index.ts';
import { ebpfHarness } from '../unit/ebpf-harness.ts';
import { iptablesHarness } from '../unit/iptables-harness.ts';
import { nftablesHarness } from '../unit/nftables-harness.ts';

/** How the agent in the lab drives the kernel, and the fake that says beforehand what comes of it. */
export interface LabMode {
  readonly name: string;
  readonly dataplane: DataplaneMode;
  /** What tells the agent of a node its mode. */
  readonly flags: (node: LabNode) => readonly string[];
  /** Why this machine's labs cannot run it, in words; undefined where they can. Absent: every lab can. */
  readonly obstacle?: (lab: Lab) => string | undefined;
  readonly harness: BackendHarness;
}

const nftables: LabMode = {
  name: 'nftables',
  dataplane: 'nftables',
  flags: (node) => proxyModeFlags(node, 'nftables'),
  harness: nftablesHarness,
};

const [nft, legacy] = (['nft', 'legacy'] as const).map((variant): LabMode => ({
  name: `iptables-${variant}`,
  dataplane: 'iptables',
  // The default of a second between two applies would be most of what the scenarios wait for.
  flags: (node) => [
    ...proxyModeFlags(node, 'iptables'),
    `--switchyard-iptables-variant=${variant}`,
    '--iptables-min-sync-period=1ms',
  ],
  harness: iptablesHarness({ variant, hasAccounting: true }),
})) as [LabMode, LabMode];

const [tc, rules] = (['tc', 'nftables'] as const).map((northSouth): LabMode => ({
  name: `ebpf-${northSouth}`,
  dataplane: 'ebpf',
  flags: (node) => [...proxyModeFlags(node, 'ebpf'), `--switchyard-ebpf-north-south=${northSouth}`],
  harness: ebpfHarness(northSouth),
  obstacle: ({ nodes, limitations }) =>
    nodes.every((node) => node.cgroupPath !== undefined && node.bpffsPath !== undefined)
      ? undefined
      : limitations.join('; '),
})) as [LabMode, LabMode];

/** Every dataplane in every variant. Those of a lane run one after the other in the same labs, the lanes side by side. */
export const labLanes: readonly (readonly LabMode[])[] = [[nftables, tc], [nft], [legacy, rules]];
