import type { ServiceForwarding } from '@switchyard/core';
import { type Addition, elementId, frontendKey } from './elements.ts';
import type { FamilySuffix } from './names.ts';
import { withoutCovered } from './without-covered.ts';

/**
 * Appends the sources that may use a service's restricted frontends, one element per range. That a frontend is restricted
 * stands in its handle, so an empty list lets nobody in. NodePorts are never restricted.
 */
export function renderSourceRanges(service: ServiceForwarding, suffix: FamilySuffix, elements: Addition[]): void {
  for (const frontend of service.frontends) {
    if (frontend.allowedSources === 'any') continue;
    const place = frontendKey(frontend, service.protocol);
    for (const cidr of withoutCovered(frontend.allowedSources)) {
      elements.push({ kind: 'add', id: elementId(`fw-allow${suffix}`, `${place} . ${cidr}`), data: '' });
    }
  }
}
