import { ConfigError } from '@switchyard/core';
import type { Cell } from '../cell.ts';
import type { Exclusion, Matrix } from './matrix.ts';
import { isSelected } from './selector.ts';

/** All cells of a matrix. */
export interface ExpandedMatrix {
  /** Cells by backend, family, version and load balancer, in the matrix's order. */
  readonly cells: readonly Cell[];
  readonly excluded: readonly { readonly cell: Cell; readonly reason: string }[];
}

/** Makes the cells. Throws `ConfigError` for an exclusion that excludes nothing, or nothing that another has left. */
export function expandMatrix(matrix: Matrix): ExpandedMatrix {
  const used = new Set<Exclusion>();
  const cells: Cell[] = [];
  const excluded: { readonly cell: Cell; readonly reason: string }[] = [];
  for (const cell of product(matrix)) {
    const exclusion = matrix.exclude.find((one) => isSelected(one, cell));
    if (exclusion === undefined) cells.push(cell);
    else {
      used.add(exclusion);
      excluded.push({ cell, reason: exclusion.reason });
    }
  }
  const idle = matrix.exclude.findIndex((one) => !used.has(one));
  if (idle >= 0) {
    throw new ConfigError('e2e.exclude', `exclude[${idle}] of the e2e matrix excludes no cell that is left; remove it`);
  }
  return { cells, excluded };
}

function product({ backends, ipFamilies, kubernetes, loadBalancers }: Matrix): readonly Cell[] {
  return backends.flatMap((backend) =>
    ipFamilies.flatMap((ipFamily) =>
      kubernetes.flatMap(({ version }) =>
        loadBalancers.map((loadBalancer) => ({
          id: `${backend}-${ipFamily}-${version}-${loadBalancer}`,
          backend,
          ipFamily,
          kubernetes: version,
          loadBalancer,
        })),
      ),
    ),
  );
}
