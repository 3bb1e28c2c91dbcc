import { describeMatrix } from './describe-matrix.ts';
import { ebpfTcHarness, iptablesNftHarness } from './harnesses.ts';
import { nftablesHarness } from './nftables-harness.ts';

describeMatrix(
  [
    ['nftables', nftablesHarness],
    ['iptables-nft', iptablesNftHarness],
    ['ebpf-tc', ebpfTcHarness],
  ],
  ['IPv4'],
);
