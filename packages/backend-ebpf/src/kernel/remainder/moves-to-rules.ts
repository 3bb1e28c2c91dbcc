import type { ForwardingTable } from '@switchyard/core';
import type { MapSet } from '../kernel.ts';
import { frontendFlags } from '../../render/layouts.ts';
import { MapReader } from '../maps/read-maps.ts';
import { keyOf } from '../../render/render-service.ts';
import { isLeftToRules } from '../../render/remainder/left-to-rules.ts';

/**
 * Whether the maps have a frontend that a table leaves to rules, so that it moves when the table is written. For a process without a
 * record of that. Looks up frontends with source ranges only, which are few.
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
