import type { Cidr } from '@switchyard/core';
import type { Registry } from './registry/registry.ts';
import { namespaces } from './resources/namespaces.ts';
import { serviceCidrs } from './resources/service-cidrs.ts';

/** Creates the initial objects of a cluster: four namespaces and the default ServiceCIDR. */
export function createInitialObjects(registry: Registry, cidrs: readonly Cidr[]): void {
  const options = { fieldValidation: 'Strict' } as const;
  for (const name of ['default', 'kube-node-lease', 'kube-public', 'kube-system']) {
    registry.create(namespaces, '', { metadata: { name } }, options);
  }
  const lastTransitionTime = `${new Date().toISOString().slice(0, 19)}Z`;
  const ready = {
    type: 'Ready',
    status: 'True',
    lastTransitionTime,
    reason: '',
    message: 'Kubernetes default Service CIDR is ready',
  };
  const body = { metadata: { name: 'kubernetes' }, spec: { cidrs }, status: { conditions: [ready] } };
  registry.create(serviceCidrs, '', body, options);
}
