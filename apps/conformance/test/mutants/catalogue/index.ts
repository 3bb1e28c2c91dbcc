import type { Mutant } from '../mutant.ts';
import { bpfMutants } from './bpf.ts';
import { coreMutants } from './core.ts';
import { ebpfMutants } from './ebpf.ts';
import { iptablesMutants } from './iptables.ts';
import { nftablesMutants } from './nftables.ts';

/** Every mutant, in the order of the report. */
export const mutants: readonly Mutant[] = [
  ...coreMutants,
  ...nftablesMutants,
  ...iptablesMutants,
  ...ebpfMutants,
  ...bpfMutants,
];
