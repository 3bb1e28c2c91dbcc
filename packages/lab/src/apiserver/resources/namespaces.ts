import { type JsonObject, objectAt, stringAt } from '../json.ts';
import { defineResource, type ResourceDefinition } from '../resource.ts';
import { namespaceSchema } from '../schema/cluster.ts';
import { ageColumn, column, nameColumn } from './common.ts';

/** v1 Namespace. */
export const namespaces: ResourceDefinition = defineResource({
  kind: 'Namespace',
  shortNames: ['ns'],
  isNamespaced: false,
  subresources: ['status'],
  schema: namespaceSchema,
  nameRule: 'label',
  fieldSelectors: { 'status.phase': (object) => stringAt(object, 'status', 'phase') },
  setDefaults,
  initialStatus: () => ({ phase: 'Active' }),
  bookmarkShell: { spec: {}, status: {} },
  columns: [nameColumn, column('Status', (object) => stringAt(object, 'status', 'phase')), ageColumn],
});

function setDefaults(object: JsonObject): JsonObject {
  const metadata = objectAt(object, 'metadata');
  const labels = { ...objectAt(metadata, 'labels'), 'kubernetes.io/metadata.name': stringAt(metadata, 'name') };
  const spec = objectAt(object, 'spec');
  return {
    ...object,
    metadata: { ...metadata, labels },
    spec: { ...spec, finalizers: spec['finalizers'] ?? ['kubernetes'] },
  };
}
