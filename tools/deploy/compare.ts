import type { KubeObject } from './kube-object.ts';

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
