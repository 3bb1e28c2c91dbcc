import { type Addition, elementId, frontendKey } from './elements.ts';
import { hex } from './handles.ts';
import type { FamilySuffix } from './names.ts';
import type { PlacedService } from './place-service.ts';
import { withoutCovered } from './without-covered.ts';

/**
 * Appends the elements that restrict who may use a service's frontends: one that says "restricted" per frontend, so that
 * an empty list lets nobody in, and one per allowed range. None for most services; NodePorts are never restricted.
 */
export function renderSourceRanges({ service, id }: PlacedService, suffix: FamilySuffix, elements: Addition[]): void {
  for (const frontend of service.frontends) {
    if (frontend.allowedSources === 'any') continue;
    const place = frontendKey(frontend, service.protocol);
    for (const cidr of withoutCovered(frontend.allowedSources)) {
      elements.push({ kind: 'add', id: elementId(`fw-allow${suffix}`, `${place} . ${cidr}`), data: '' });
    }
    elements.push({ kind: 'add', id: elementId(`fw${suffix}`, place), data: hex(id) });
  }
}
