import { type BackendName, backendNames } from '@switchyard/conformance';
import { type CellFamily, cellFamilies } from './cell.ts';

/** A run of the conformance suite in a lab, which needs no cluster. */
export interface LabCell {
  /** `lab-nftables-dual`: the part after `e2e:` of its nx target. */
  readonly id: string;
  readonly backend: BackendName;
  readonly ipFamily: CellFamily;
}

/** All of them. */
export const labCells: readonly LabCell[] = backendNames.flatMap((backend) =>
  cellFamilies.map((ipFamily) => ({ id: `lab-${backend}-${ipFamily}`, backend, ipFamily })),
);
