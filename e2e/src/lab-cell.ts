import { type CellFamily, cellFamilies } from './cell.ts';

/** The conformance runner's names of our backends, in all the ways they run. */
export const labBackends = ['nftables', 'iptables-nft', 'iptables-legacy', 'ebpf-tc', 'ebpf-nftables'] as const;

/** A run of the conformance suite in a lab, which needs no cluster. */
export interface LabCell {
  /** `lab-nftables-dual`: the part after `e2e:` of its nx target. */
  readonly id: string;
  readonly backend: (typeof labBackends)[number];
  readonly ipFamily: CellFamily;
}

/** All of them. */
export const labCells: readonly LabCell[] = labBackends.flatMap((backend) =>
  cellFamilies.map((ipFamily) => ({ id: `lab-${backend}-${ipFamily}`, backend, ipFamily })),
);
