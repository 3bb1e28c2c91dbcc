import { parseAllDocuments } from 'yaml';

/** One Kubernetes object of a rendered manifest. */
export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    /** Undefined for kinds without one. */
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly [field: string]: unknown;
}

/** `Kind namespace/name`, which identifies an object among rendered ones. */
export function nameOf({ kind, metadata }: KubeObject): string {
  return metadata.namespace === undefined
    ? `${kind} ${metadata.name}`
    : `${kind} ${metadata.namespace}/${metadata.name}`;
}

/** Reads a stream of YAML documents, ordered by `nameOf`. Empty documents are left out; anything but an object throws. */
export function parseManifests(text: string): readonly KubeObject[] {
  const objects: KubeObject[] = [];
  for (const document of parseAllDocuments(text)) {
    const [error] = document.errors;
    if (error !== undefined) throw error;
    const value: unknown = document.toJS();
    if (value === null) continue;
    if (!isKubeObject(value)) throw new Error(`not a Kubernetes object: ${JSON.stringify(value).slice(0, 200)}`);
    objects.push(value);
  }
  return objects.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
}

/** The only object of a kind. Throws where there is none, or several. */
export function onlyOne(objects: readonly KubeObject[], kind: string): KubeObject {
  const [found, ...others] = objects.filter((object) => object.kind === kind);
  if (found === undefined || others.length > 0) {
    throw new Error(`wanted one ${kind}, found: ${objects.map(nameOf).join(', ')}`);
  }
  return found;
}

function isKubeObject(value: unknown): value is KubeObject {
  const object = value as Partial<KubeObject> | undefined;
  return (
    typeof object?.apiVersion === 'string' &&
    typeof object.kind === 'string' &&
    typeof object.metadata?.name === 'string'
  );
}

/** Labels by which Helm knows what it made; Kustomize has no use for them. */
const helmLabels: ReadonlySet<string> = new Set([
  'app.kubernetes.io/managed-by',
  'app.kubernetes.io/version',
  'helm.sh/chart',
]);

/** An object without what only Helm writes: three labels. */
export function withoutHelmLabels(object: KubeObject): KubeObject {
  const labels = Object.entries(object.metadata.labels ?? {}).filter(([label]) => !helmLabels.has(label));
  return { ...object, metadata: { ...object.metadata, labels: Object.fromEntries(labels) } };
}

/** ConfigMaps hold texts; for a comparison that looks at meaning, YAML texts are parsed by the given function. */
export function withParsedData(object: KubeObject, parse: (text: string) => unknown): KubeObject {
  if (object.kind !== 'ConfigMap') return object;
  const data = Object.entries(object['data'] as Readonly<Record<string, string>>);
  return { ...object, data: Object.fromEntries(data.map(([key, text]) => [key, parse(text)])) };
}
