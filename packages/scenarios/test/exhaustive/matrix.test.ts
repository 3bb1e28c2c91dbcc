import { describeMatrix } from '../unit/describe-matrix.ts';
import { ebpfHarness } from '../unit/ebpf-harness.ts';
import { ebpfTcHarness, iptablesNftHarness } from '../unit/harnesses.ts';
import { iptablesHarness } from '../unit/iptables-harness.ts';
import { nftablesHarness } from '../unit/nftables-harness.ts';

// `nx test` runs the matrix in IPv4 with the first variant of each backend.
describeMatrix(
  [
    ['nftables', nftablesHarness],
    ['iptables-nft', iptablesNftHarness],
    ['ebpf-tc', ebpfTcHarness],
  ],
  ['IPv6'],
);

describeMatrix(
  [
    ['iptables-legacy', iptablesHarness({ variant: 'legacy', hasAccounting: true })],
    ['ebpf-nftables', ebpfHarness('nftables')],
  ],
  ['IPv4', 'IPv6'],
);
