import type { ServiceForwarding } from '@switchyard/core';
import { type Element, elementId, frontendKey } from './elements.ts';
import { hex } from './handles.ts';
import type { FamilySuffix } from './names.ts';
import { withoutCovered } from './without-covered.ts';

/**
 * The elements that restrict who may use a service's frontends: one that says "restricted" per frontend, so that an
 * empty list lets nobody in, and one per allowed range. Empty for most services. NodePorts are never restricted.
 */
export function renderSourceRanges(service: ServiceForwarding, serviceId: number, suffix: FamilySuffix): Element[] {
  return service.frontends.flatMap((frontend) => {
    const { allowedSources } = frontend;
    if (allowedSources === 'any') return [];
    const place = frontendKey(frontend, service.protocol);
    const ranges = withoutCovered(allowedSources).map((cidr) => ({
      id: elementId(`fw-allow${suffix}`, `${place} . ${cidr}`),
      data: '',
    }));
    return [...ranges, { id: elementId(`fw${suffix}`, place), data: hex(serviceId) }];
  });
}
