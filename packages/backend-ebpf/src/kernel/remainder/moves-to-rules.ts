import type { ForwardingTable } from '@switchyard/core';
import type { MapSet } from '../kernel.ts';
import { frontendFlags } from '../../render/layouts.ts';
import { MapReader } from '../maps/read-maps.ts';
import { keyOf } from '../../render/render-service.ts';
import { isLeftToRules } from '../../render/remainder/left-to-rules.ts';

/**
 * Whether programs carry something, by what their maps hold, that a table leaves to rules: it moves when the table is written. For a
 * process that does not remember who carries what. Asks the kernel for frontends with source ranges alone, which are few.
 */
export function movesToRules(found: MapSet, table: ForwardingTable): boolean {
  const reader = new MapReader(found);
  for (const service of table.services.values()) {
    const { protocol, frontends } = service;
    if (protocol === 'SCTP') continue; // programs never had it
    for (const frontend of frontends) {
      if (!isLeftToRules(service, frontend)) continue;
      const entry = reader.frontend(keyOf(frontend, protocol));
      if (entry !== undefined && (entry.actions & frontendFlags.socketsPass) === 0) return true;
    }
  }
  return false;
}
