import { describeContract } from '../unit/describe-contract.ts';
import { ebpfHarness } from '../unit/ebpf-harness.ts';
import { iptablesHarness } from '../unit/iptables-harness.ts';

/** Both variants of iptables are written alike, and read back and refused differently. */
const legacy = { ...iptablesHarness({ variant: 'legacy', hasAccounting: false }), name: 'iptables-legacy' };

/** All Services in maps and in rules: more than one part may refuse, and all of them are cleaned up. */
const both = ebpfHarness('nftables');

describeContract([legacy, both], 'all');
