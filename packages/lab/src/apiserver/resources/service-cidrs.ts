import { tryParseCidr } from '@switchyard/core';
import { type FieldError, invalidField, requiredField } from '../field-error.ts';
import { type JsonObject, listAt } from '../json.ts';
import { defineResource, type ResourceDefinition } from '../resource.ts';
import { serviceCidrSchema } from '../schema/network.ts';
import { ageColumn, column, nameColumn, orNone } from './common.ts';

/** networking.k8s.io/v1 ServiceCIDR (KEP-1880). Objects made later do not widen the allocation ranges. */
export const serviceCidrs: ResourceDefinition = defineResource({
  group: 'networking.k8s.io',
  kind: 'ServiceCIDR',
  isNamespaced: false,
  subresources: ['status'],
  schema: serviceCidrSchema,
  validate,
  initialStatus: undefined,
  bookmarkShell: { spec: {}, status: {} },
  columns: [
    nameColumn,
    column('CIDRs', (object) => orNone(listAt(object, 'spec', 'cidrs').map(String).join(','))),
    ageColumn,
  ],
});

function validate(object: JsonObject): readonly FieldError[] {
  const cidrs = listAt(object, 'spec', 'cidrs');
  if (cidrs.length === 0) return [requiredField('spec.cidrs', 'at least one CIDR required')];
  return cidrs.flatMap((cidr, index) =>
    tryParseCidr(String(cidr)) === undefined
      ? [invalidField(`spec.cidrs[${index}]`, cidr, 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)')]
      : [],
  );
}
