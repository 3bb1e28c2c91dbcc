import { type FieldError, invalidField } from '../field-error.ts';
import { type JsonObject, numberAt, stringAt } from '../json.ts';
import { defineResource, type ResourceDefinition } from '../resource.ts';
import { leaseSchema } from '../schema/cluster.ts';
import { ageColumn, column, nameColumn } from './common.ts';

/** coordination.k8s.io/v1 Lease. The server only stores them; candidates decide who holds one. */
export const leases: ResourceDefinition = defineResource({
  group: 'coordination.k8s.io',
  kind: 'Lease',
  isNamespaced: true,
  schema: leaseSchema,
  validate,
  columns: [nameColumn, column('Holder', (object) => stringAt(object, 'spec', 'holderIdentity')), ageColumn],
});

function validate(object: JsonObject): readonly FieldError[] {
  const duration = numberAt(object, 'spec', 'leaseDurationSeconds');
  const transitions = numberAt(object, 'spec', 'leaseTransitions');
  return [
    ...(duration !== undefined && duration <= 0
      ? [invalidField('spec.leaseDurationSeconds', duration, 'must be greater than 0')]
      : []),
    ...(transitions !== undefined && transitions < 0
      ? [invalidField('spec.leaseTransitions', transitions, 'must be greater than or equal to 0')]
      : []),
    ...['acquireTime', 'renewTime'].flatMap((field) => timeErrors(field, stringAt(object, 'spec', field))),
  ];
}

function timeErrors(field: string, text: string): readonly FieldError[] {
  if (text === '' || /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/.test(text)) return [];
  return [invalidField(`spec.${field}`, text, 'must be a time such as 2006-01-02T15:04:05.000000Z')];
}
