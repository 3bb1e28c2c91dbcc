import { topLevel } from './common.ts';
import { intPointer, object, type ObjectSchema, textPointer } from './schema.ts';

/** coordination.k8s.io/v1 Lease. */
export const leaseSchema: ObjectSchema = topLevel('Lease', {
  spec: object('LeaseSpec', {
    holderIdentity: textPointer,
    leaseDurationSeconds: intPointer,
    acquireTime: textPointer,
    renewTime: textPointer,
    leaseTransitions: intPointer,
    strategy: textPointer,
    preferredHolder: textPointer,
  }),
});
