import type { DataplaneMode } from '@switchyard/core';
import type { BackendHarness } from '../../src/index.ts';
import { iptablesHarness } from '../unit/iptables-harness.ts';
import { nftablesHarness } from '../unit/nftables-harness.ts';

/** How the agent in the lab drives the kernel, and the fake that says beforehand what comes of it. */
export interface LabMode {
  readonly name: string;
  readonly dataplane: DataplaneMode;
  readonly flags: readonly string[];
  readonly harness: BackendHarness;
}

/** Both dataplanes, and both variants of iptables. */
export const labModes: readonly LabMode[] = [
  { name: 'nftables', dataplane: 'nftables', flags: ['--proxy-mode=nftables'], harness: nftablesHarness },
  ...(['nft', 'legacy'] as const).map((variant) => ({
    name: `iptables-${variant}`,
    dataplane: 'iptables' as const,
    // The default of a second between two applies would be most of what the scenarios wait for.
    flags: ['--proxy-mode=iptables', `--switchyard-iptables-variant=${variant}`, '--iptables-min-sync-period=1ms'],
    harness: iptablesHarness({ variant, hasAccounting: true }),
  })),
];
