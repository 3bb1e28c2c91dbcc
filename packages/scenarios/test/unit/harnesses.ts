import { type BackendHarness } from '../../src/index.ts';
import { ebpfHarness } from './ebpf-harness.ts';
import { iptablesHarness } from './iptables-harness.ts';
import { nftablesHarness } from './nftables-harness.ts';

export const iptablesNftHarness: BackendHarness = iptablesHarness({ variant: 'nft', hasAccounting: true });
export const ebpfTcHarness: BackendHarness = ebpfHarness('tc');

/**
 * Every backend over its fake kernel. What iptables writes does not depend on its variant, and what eBPF writes beside rules not on
 * who forwards what comes from outside; rendered.test.ts sees to that.
 */
export const harnesses: readonly BackendHarness[] = [nftablesHarness, iptablesNftHarness, ebpfTcHarness];
