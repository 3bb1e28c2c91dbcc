import { type DataplaneName, dataplaneNames } from '@switchyard/scenarios';
import { ConfigError } from '@switchyard/core';
import { type Cell, cellFamilies, type CellFamily, type CellLoadBalancer, cellLoadBalancers } from './cell.ts';
import {
  type Field,
  fieldFault,
  parseFields,
  readList,
  readObject,
  readOneOf,
  readOptional,
  readText,
  refuseDoubles,
} from './fields.ts';

/** A version of Kubernetes that cells are made with. */
export interface KubernetesRelease {
  /** Version, as `1.36`. */
  readonly version: string;
  /** As `1.36.4`: release of the node image, and of the e2e tests that run against it. */
  readonly release: string;
  /** kind's image of a node, without digest. */
  readonly nodeImage: string;
  /** `sha256:...`; undefined: the registry's current image of that name, which may change. */
  readonly digest: string | undefined;
  /** Image instead of registry.k8s.io's image of the release; absent: that. */
  readonly upstreamImage?: string;
}

/** Cells that the matrix leaves out. */
interface Exclusion extends CellSelector {
  readonly reason: string;
}

/** `e2e/matrix.json`. */
export interface Matrix {
  readonly backends: readonly DataplaneName[];
  readonly ipFamilies: readonly CellFamily[];
  readonly loadBalancers: readonly CellLoadBalancer[];
  /** The oldest first. */
  readonly kubernetes: readonly KubernetesRelease[];
  /** The kind release that the node images were made with; an older kind is refused. */
  readonly kind: string;
  readonly exclude: readonly Exclusion[];
  /** Beginnings of the names of upstream's e2e tests that run in each cell. */
  readonly upstreamFocus: readonly string[];
}

/** The image as an argument of kind. */
export function nodeImageOf({ nodeImage, digest }: KubernetesRelease): string {
  return digest === undefined ? nodeImage : `${nodeImage}@${digest}`;
}

/** The image with `e2e.test` and `ginkgo` of a release. */
export function upstreamImageOf({ release, upstreamImage }: KubernetesRelease): string {
  return upstreamImage ?? `registry.k8s.io/conformance:v${release}`;
}

/** Some cells of the matrix. Undefined means any value. */
export interface CellSelector {
  readonly backend?: readonly DataplaneName[] | undefined;
  readonly ipFamily?: readonly CellFamily[] | undefined;
  /** Versions such as `1.36`. */
  readonly kubernetes?: readonly string[] | undefined;
  readonly loadBalancer?: readonly CellLoadBalancer[] | undefined;
}

/** The fields by which cells are chosen. */
export const selectorFields = ['backend', 'ipFamily', 'kubernetes', 'loadBalancer'] as const;

/** Reads the fields of a selector out of an object's. */
export function readSelector(fields: Readonly<Record<(typeof selectorFields)[number], Field>>): CellSelector {
  const words = <Word extends string>(field: Field, known: readonly Word[]): readonly Word[] | undefined =>
    readOptional(field, (list) => readList(list, (item) => readOneOf(item, known)));
  return {
    backend: words(fields.backend, dataplaneNames),
    ipFamily: words(fields.ipFamily, cellFamilies),
    kubernetes: readOptional(fields.kubernetes, (list) => readList(list, readVersion)),
    loadBalancer: words(fields.loadBalancer, cellLoadBalancers),
  };
}

/** A version of Kubernetes without the patch level. */
function readVersion(field: Field): string {
  return readText(field, /^1\.\d+$/, 'a version such as "1.36", as a text');
}

/** Whether the selector means this cell. */
export function isSelected(selector: CellSelector, cell: Cell): boolean {
  return selectorFields.every((name) => {
    const words: readonly string[] | undefined = selector[name];
    return words === undefined || words.includes(cell[name]);
  });
}

/** Reads `e2e/matrix.json`; `file` is its name in messages. Throws `ConfigError` with the place of the first fault. */
export function readMatrix(file: string, text: string): Matrix {
  const fields = readObject(parseFields(file, text), [
    'backends',
    'ipFamilies',
    'loadBalancers',
    'kubernetes',
    'kind',
    'exclude',
    'upstreamFocus',
  ]);
  return {
    backends: readWords(fields.backends, dataplaneNames),
    ipFamilies: readWords(fields.ipFamilies, cellFamilies),
    loadBalancers: readWords(fields.loadBalancers, cellLoadBalancers),
    kubernetes: readReleases(fields.kubernetes),
    kind: readText(fields.kind, /^\d+\.\d+\.\d+$/, 'a release of kind such as "0.33.0"'),
    exclude: readList(fields.exclude, readExclusion),
    upstreamFocus: readSome(fields.upstreamFocus, (item) =>
      readText(item, /^\[sig-/, "the beginning of a test's name, such as '[sig-network] Services'"),
    ),
  };
}

function readSome<Item>(field: Field, read: (item: Field) => Item): readonly Item[] {
  const items = readList(field, read);
  if (items.length === 0) throw fieldFault(field, 'at least one');
  refuseDoubles(
    field,
    items.map((item) => JSON.stringify(item)),
  );
  return items;
}

function readWords<Word extends string>(field: Field, words: readonly Word[]): readonly Word[] {
  return readSome(field, (item) => readOneOf(item, words));
}

function readReleases(field: Field): readonly KubernetesRelease[] {
  const releases = readSome(field, readRelease);
  refuseDoubles(
    field,
    releases.map(({ version }) => version),
  );
  return releases;
}

function readRelease(field: Field): KubernetesRelease {
  const fields = readObject(field, ['version', 'release', 'nodeImage', 'digest']);
  const version = readVersion(fields.version);
  const release = readText(fields.release, /^1\.\d+\.\d+$/, 'a release such as "1.36.4"');
  const nodeImage = readText(fields.nodeImage, /^[^\s@]+:[^\s@:/]+$/, 'an image with a tag, without digest');
  if (!release.startsWith(`${version}.`)) throw fieldFault(fields.release, `a release of ${version}`);
  const digest = readOptional(fields.digest, (text) =>
    text.value === ''
      ? undefined
      : readText(text, /^sha256:[0-9a-f]{64}$/, '"" or "sha256:" and 64 hexadecimal digits'),
  );
  return { version, release, nodeImage, digest };
}

function readExclusion(field: Field): Exclusion {
  const fields = readObject(field, [...selectorFields, 'reason']);
  const selector = readSelector(fields);
  if (Object.values(selector).every((words) => words === undefined)) {
    throw new ConfigError('e2e.field', `${field.place}: names no cell, which would exclude all of them`);
  }
  return { ...selector, reason: readText(fields.reason, /\S+\s+\S+/, 'a reason, in words') };
}

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

/** Images that a command line names in the place of the matrix's. */
export interface NamedImages {
  readonly nodeImage: string | undefined;
  readonly upstreamImage: string | undefined;
}

/**
 * The releases with the named images. A tag such as `v1.36.2` also says which release upstream's tests are of. Throws `ConfigError` when
 * the chosen cells have several Kubernetes versions, or another one than the tag.
 */
export function withImages(
  releases: readonly KubernetesRelease[],
  chosen: ReadonlySet<string>,
  { nodeImage, upstreamImage }: NamedImages,
): readonly KubernetesRelease[] {
  if (nodeImage === undefined && upstreamImage === undefined) return releases;
  const [version] = chosen;
  if (version === undefined || chosen.size > 1) {
    const found = version === undefined ? 'none' : [...chosen].join(', ');
    throw new ConfigError(
      'e2e.image',
      `--node-image and --upstream-image are for cells of one Kubernetes version, and the chosen ones have ${found}`,
    );
  }
  const [, release, tagVersion] = /:v((1\.\d+)\.\d+)(?:[@-]|$)/.exec(nodeImage ?? '') ?? [];
  if (tagVersion !== undefined && tagVersion !== version)
    throw new ConfigError(
      'e2e.image',
      `${nodeImage} holds Kubernetes ${tagVersion}, and the chosen cells want ${version}`,
    );
  return releases.map((one) => {
    if (one.version !== version) return one;
    const node = nodeImage === undefined ? {} : { nodeImage, digest: undefined, release: release ?? one.release };
    return { ...one, ...node, ...(upstreamImage === undefined ? {} : { upstreamImage }) };
  });
}
