import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CreateNodesV2 } from 'nx/src/devkit-exports';

// A plugin of nx (nx.json): the project `e2e` has one target per cell of e2e/matrix.json, named as the cell, so that nx calls it
// `e2e:<cell>`. Every nx command loads it, hence no import of a package that must be built or compiled.

/** Backends and families of e2e's `labCells`. A test compares the targets with those. */
const labBackends = ['nftables', 'iptables-nft', 'iptables-legacy', 'ebpf-tc', 'ebpf-nftables'];
const labFamilies = ['ipv4', 'ipv6', 'dual'];

/** The cells of `e2e/matrix.json` as JSON; e2e's `readMatrix` checks the file, and its `expandMatrix` has the same cells. */
interface MatrixFile {
  readonly backends: readonly string[];
  readonly ipFamilies: readonly string[];
  readonly kubernetes: readonly { readonly version: string }[];
  readonly loadBalancers: readonly string[];
  readonly exclude: readonly Readonly<Partial<Record<keyof Point, readonly string[]>>>[];
}

interface Point {
  readonly backend: string;
  readonly ipFamily: string;
  readonly kubernetes: string;
  readonly loadBalancer: string;
}

/** Target names of all cells, those in labs last. */
export function cellNames({ backends, ipFamilies, kubernetes, loadBalancers, exclude }: MatrixFile): readonly string[] {
  const points = backends.flatMap((backend) =>
    ipFamilies.flatMap((ipFamily) =>
      kubernetes.flatMap(({ version }) =>
        loadBalancers.map((loadBalancer): Point => ({ backend, ipFamily, kubernetes: version, loadBalancer })),
      ),
    ),
  );
  const isExcluded = (point: Point): boolean =>
    exclude.some((one) =>
      (['backend', 'ipFamily', 'kubernetes', 'loadBalancer'] as const).every(
        (field) => one[field]?.includes(point[field]) ?? true,
      ),
    );
  const clusters = points.filter((point) => !isExcluded(point)).map((point) => Object.values(point).join('-'));
  const labs = labBackends.flatMap((backend) => labFamilies.map((family) => `lab-${backend}-${family}`));
  return [...clusters, ...labs];
}

function targetOf(cell: string): object {
  return {
    command: `node --conditions=@switchyard/source e2e/src/main.ts ${cell}`,
    options: { cwd: '.' },
    cache: false,
    parallelism: false,
    dependsOn: [{ projects: ['node-agent', 'kind-lb-controller', 'conformance'], target: 'bundle' }],
  };
}

/** The entry point of a plugin, as nx names it. */
export const createNodesV2: CreateNodesV2 = [
  'e2e/matrix.json',
  (files, _, { workspaceRoot }) =>
    files.map((file) => {
      const matrix = JSON.parse(readFileSync(join(workspaceRoot, file), 'utf8')) as MatrixFile;
      const targets = Object.fromEntries(cellNames(matrix).map((cell) => [cell, targetOf(cell)]));
      return [file, { projects: { e2e: { targets } } }];
    }),
];
