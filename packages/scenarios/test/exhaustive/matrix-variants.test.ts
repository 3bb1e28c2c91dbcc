import { describeMatrix } from '../unit/describe-matrix.ts';
import { ebpfHarness } from '../unit/ebpf-harness.ts';
import { iptablesHarness } from '../unit/iptables-harness.ts';

// `nx test` runs the matrix with the first variant of each backend, and compares what variants render for scenario files.
describeMatrix([
  ['iptables-legacy', iptablesHarness({ variant: 'legacy', hasAccounting: true })],
  ['ebpf-nftables', ebpfHarness('nftables')],
]);
