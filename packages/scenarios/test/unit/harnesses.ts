import { type BackendHarness } from '../../src/index.ts';
import { iptablesHarness } from './iptables-harness.ts';
import { nftablesHarness } from './nftables-harness.ts';

/** Every backend over its fake kernel. What iptables writes does not depend on its variant; rendered.test.ts sees to that. */
export const harnesses: readonly BackendHarness[] = [
  nftablesHarness,
  iptablesHarness({ variant: 'nft', hasAccounting: true }),
];
