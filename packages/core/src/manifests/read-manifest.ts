import { requireText } from '../base/argument.ts';
import { newProjectionContext, projections, type RawObjects } from '../kubernetes/to-records.ts';
import type { Records, ResourceKind } from '../model/state/cluster-event.ts';
import { checkFields, type FieldPath, isObject, printPath } from './check-fields.ts';
import { parseYaml, type YamlDocument } from './parse-yaml.ts';

/** One record and its place, as an event that `ClusterState.apply` takes. Lines count from 1. */
export type ManifestObject = {
  [K in ResourceKind]: {
    readonly kind: 'upsert';
    readonly resource: K;
    /** The record's key. */
    readonly name: string;
    readonly item: Records[K];
    readonly line: number;
  };
}[ResourceKind];

/** A fault and its place. Lines and columns count from 1. */
export interface ManifestFault {
  readonly line: number;
  readonly column: number;
  /** Object, field and fault: `Service shop/cart: spec.ports[0].port must be ...`. */
  readonly message: string;
}

/** An omission that is no fault. */
export interface ManifestNote {
  readonly line: number;
  /** Equal for notes of which only the first is logged. */
  readonly topic: string;
  readonly message: string;
}

/** Contents of a manifest file. If there are faults, none of its objects may be used. */
export interface Manifest {
  readonly objects: readonly ManifestObject[];
  readonly faults: readonly ManifestFault[];
  readonly notes: readonly ManifestNote[];
}

const apiVersions: Readonly<Record<ResourceKind, RegExp>> = {
  Service: /^v1$/,
  EndpointSlice: /^discovery\.k8s\.io\/v1$/,
  Node: /^v1$/,
  ServiceCIDR: /^networking\.k8s\.io\/v1(?:beta1)?$/,
};

/**
 * Reads YAML (any number of documents) or JSON: Services, EndpointSlices, Nodes, ServiceCIDRs, and lists
 * of them (`List`, `ServiceList` ...). Defaults are those of the API server: namespace `default`, an
 * unnamed slice port is named ''. Other kinds are noted and omitted. Pure. Throws
 * `UsageError` for what is no text; all faults inside of the text are in the result.
 */
export function readManifest(text: string): Manifest {
  requireText('readManifest: text', text);
  const reading = new Reading();
  for (const document of parseYaml(text)) reading.document(document);
  return reading;
}

/** A value somewhere in a document. */
interface Place {
  readonly document: YamlDocument;
  readonly path: FieldPath;
  /** Kind and version that the enclosing list gives to items without their own. */
  readonly inherited: { readonly kind?: string; readonly apiVersion?: string };
}

class Reading implements Manifest {
  readonly objects: ManifestObject[] = [];
  readonly faults: ManifestFault[] = [];
  readonly notes: ManifestNote[] = [];
  readonly #lines = new Map<string, number>();

  document(document: YamlDocument): void {
    this.faults.push(...document.errors);
    if (document.errors.length > 0 || (document.value ?? undefined) === undefined) return;
    this.#value(document.value, { document, path: [], inherited: {} });
  }

  #value(value: unknown, place: Place): void {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      return this.#fault(place, [], 'expected a Kubernetes object');
    }
    const { kind = place.inherited.kind, apiVersion = place.inherited.apiVersion, items } = value as ObjectHead;
    if (typeof kind !== 'string' || kind === '') return this.#fault(place, [], 'kind is required');
    if (typeof apiVersion !== 'string') return this.#fault(place, [], `${kind}: apiVersion is required`);
    if (isResource(kind) && apiVersions[kind].test(apiVersion)) return this.#object(kind, value, place);
    if (kind.endsWith('List') && items !== undefined) {
      const inherited = kind === 'List' ? {} : { kind: kind.slice(0, -'List'.length), apiVersion };
      if (!Array.isArray(items ?? [])) return this.#fault(place, ['items'], `${kind}: items must be a list`);
      ((items ?? []) as readonly unknown[]).forEach((item, index) =>
        this.#value(item, { ...place, path: [...place.path, 'items', index], inherited }),
      );
      return;
    }
    const what = `${kind} (${apiVersion})`;
    this.notes.push({ line: lineOf(place), topic: what, message: `${what} is not a kind a proxy reads; ignored` });
  }

  #object<K extends ResourceKind>(resource: K, value: object, place: Place): void {
    const faults = checkFields(resource, value);
    const raw = withDefaults(resource, value);
    const label = labelOf(resource, raw);
    for (const { path, message } of faults) this.#fault(place, path, `${label}: ${printPath(path)} ${message}`);
    if (faults.length > 0) return;
    const context = newProjectionContext(({ path, value: part }) =>
      this.#fault(place, parsePath(path), `${label}: ${path} cannot be used: ${JSON.stringify(part)}`),
    );
    const before = this.faults.length;
    const projected = projections[resource](raw as RawObjects[K], context); // checked above, field by field
    if (this.faults.length > before) return;
    const line = lineOf(place);
    if (projected.status === 'ignored') {
      this.notes.push({ line, topic: label, message: `${label} is ignored: ${projected.reason}` });
      return;
    }
    this.#noteMissingAddress(label, line, projected.record);
    const known = this.#lines.get(label);
    if (known !== undefined) return this.#fault(place, [], `${label} is already defined in line ${known}`);
    this.#lines.set(label, line);
    const { name, record: item } = projected;
    // `resource` and `item` come from the same K, which TypeScript cannot follow into the union.
    this.objects.push({ kind: 'upsert', resource, name, item, line } as unknown as ManifestObject);
  }

  #noteMissingAddress(label: string, line: number, record: Records[ResourceKind]): void {
    if (!('clusterIps' in record) || record.clusterIps.length > 0) return;
    if (record.isHeadless || record.type === 'ExternalName') return;
    const message = `${label} has no clusterIP, and there is no API server to allocate one; it is not forwarded`;
    this.notes.push({ line, topic: label, message });
  }

  #fault({ document, path }: Place, field: FieldPath, message: string): void {
    this.faults.push({ ...document.locate([...path, ...field]), message });
  }
}

interface ObjectHead {
  readonly kind?: unknown;
  readonly apiVersion?: unknown;
  readonly items?: unknown;
}

interface RawHead {
  readonly metadata: { readonly name?: unknown; readonly namespace?: unknown };
}

function isResource(kind: string): kind is ResourceKind {
  return Object.hasOwn(apiVersions, kind);
}

function isNamespaced(resource: ResourceKind): boolean {
  return resource === 'Service' || resource === 'EndpointSlice';
}

/** Returns an object with the defaults of the API server. */
function withDefaults(resource: ResourceKind, value: object): RawHead {
  const { metadata, ports, ...rest } = value as { readonly metadata?: unknown; readonly ports?: unknown };
  const head = typeof metadata === 'object' && metadata !== null ? metadata : {};
  const named =
    resource === 'EndpointSlice' && Array.isArray(ports)
      ? ports.map((port: unknown) => (isObject(port) ? { ...port, name: port['name'] ?? '' } : port))
      : ports;
  return {
    ...rest,
    ...(named === undefined ? {} : { ports: named }),
    metadata: isNamespaced(resource)
      ? { ...head, namespace: (head as { namespace?: unknown }).namespace ?? 'default' }
      : head,
  };
}

function labelOf(resource: ResourceKind, { metadata: { name, namespace } }: RawHead): string {
  const bare = typeof name === 'string' ? name : '(unnamed)';
  return isNamespaced(resource) ? `${resource} ${String(namespace)}/${bare}` : `${resource} ${bare}`;
}

function lineOf({ document, path }: Place): number {
  return document.locate(path).line;
}

/** Parses a path such as `spec.ports[1]`. Reads only paths that the projections format. */
function parsePath(text: string): FieldPath {
  return [...text.matchAll(/([A-Za-z]\w*)|\[(\d+)\]/g)].map(([, name, index]) => name ?? Number(index));
}
