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
    flags: ['--proxy-mode=iptables', `--switchyard-iptables-variant=${variant}`],
    harness: iptablesHarness({ variant, hasAccounting: true }),
  })),
];
