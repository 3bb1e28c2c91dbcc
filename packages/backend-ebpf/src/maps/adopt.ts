import type { ForwardingTable, ServicePortKey } from '@switchyard/core';
import { endpointFlags, frontendScopes, noId } from '../layouts.ts';
import { FrontendIndex, keyWords, noEntry } from './frontend-index.ts';
import { IdPool } from './id-pool.ts';
import { endpointWords, type MapState, serviceWords, setWords } from './map-state.ts';
import { keyOf } from './render-service.ts';
import { SlotPool } from './slot-pool.ts';

/** A value that is never right for an entry of nobody: it is written again, or deleted. */
const wrong = 1;

/**
 * Takes over what another process left in the maps: who has which id, which ranges are in use. Whatever makes no sense is noted in
 * such a way that the next apply writes it anew; nothing that stands there can do more harm.
 */
export function adoptMaps(state: MapState): void {
  const { clock, services, endpoints, slots } = state;
  for (const array of [services, endpoints, slots]) array.adopt();
  state.sourceRanges.adopt();
  state.endpointIndex.clear();
  state.disownAll();
  const lastService = adoptFrontends(state);
  state.serviceIds = IdPool.recover(clock, state.sizes.services, {
    end: Math.max(Math.ceil(services.end / serviceWords), lastService + 1),
    isUsed: (id) => state.frontends.hasAny(id),
    isClean: (id) => state.isUnusedService(id),
  });
  adoptEndpoints(state);
  adoptRanges(state);
}

/** Returns the highest service id in use. */
function adoptFrontends(state: MapState): number {
  const { count, keys, values } = state.maps.frontends.entries();
  const keyNumbers = new Uint32Array(keys.slice().buffer);
  const valueNumbers = new Uint32Array(values.slice().buffer);
  state.frontends = new FrontendIndex();
  let last = 0;
  for (let index = 0; index < count; index++) {
    const key = keyNumbers.subarray(index * keyWords, (index + 1) * keyWords);
    const service = valueNumbers[index * 2] ?? noId;
    const rest = valueNumbers[index * 2 + 1] ?? 0;
    if (isGuard(key)) state.frontends.set(key, noId, service === noId && rest === 0 ? 0 : wrong);
    else if (service === noId || service >= state.sizes.services) state.frontends.set(key, noId, wrong);
    else {
      state.frontends.set(key, service, rest);
      last = Math.max(last, service);
    }
  }
  return last;
}

/** Whether a key is one of a guard entry. */
export function isGuard(key: Uint32Array): boolean {
  return (key[4] ?? 0) >>> 24 === frontendScopes.guard;
}

/** Records of services that nobody leads to any more are put to death: no flow may stay there. */
function adoptEndpoints(state: MapState): void {
  const end = Math.ceil(state.endpoints.end / endpointWords);
  const isUsed = (id: number): boolean =>
    (state.flagsOf(id) & endpointFlags.alive) !== 0 && state.frontends.hasAny(state.ownerOf(id));
  for (let id = Math.min(end, state.sizes.endpoints) - 1; id > noId; id--) {
    if (isUsed(id)) state.endpointIndex.add(state.ownerOf(id), id);
    else if (state.flagsOf(id) !== 0) state.setFlags(id, 0);
  }
  state.endpointIds = IdPool.recover(state.clock, state.sizes.endpoints, {
    end,
    isUsed,
    isClean: (id) => state.generationOf(id) === 0,
  });
}

/** A range that cannot be, or that another set has, belongs to nobody: its set is published anew. */
function adoptRanges(state: MapState): void {
  state.slotPool = new SlotPool(state.clock, state.sizes.slots);
  const end = Math.ceil(state.services.end / serviceWords);
  for (let service = 1; service < end; service++) {
    if (!state.frontends.hasAny(service)) continue;
    for (const set of setWords) {
      const count = state.countOf(service, set);
      if (count > 0) state.setOwned(service, set, state.slotPool.claim(state.baseOf(service, set), count));
    }
  }
  state.slotPool.retireBelow(Math.min(state.slots.end, state.sizes.slots));
}

/**
 * Which Service of a table has which id: the one its frontends lead to. A Service's first frontend counts most, which is the cluster
 * IP: the others may have gone from one Service to another meanwhile.
 */
export function claimServices(state: MapState, table: ForwardingTable): ReadonlyMap<ServicePortKey, number> {
  const claimed = new Map<ServicePortKey, number>();
  const taken = new Set<number>();
  for (const isFirstRound of [true, false]) {
    for (const { key, protocol, frontends } of table.services.values()) {
      if (protocol === 'SCTP' || claimed.has(key)) continue;
      for (const frontend of isFirstRound ? frontends.slice(0, 1) : frontends) {
        const entry = state.frontends.find(keyOf(frontend, protocol));
        const id = entry === noEntry ? noId : state.frontends.serviceOf(entry);
        if (id === noId || taken.has(id)) continue;
        taken.add(id);
        claimed.set(key, id);
        break;
      }
    }
  }
  return claimed;
}

/** All services that frontends lead to. */
export function liveServices(state: MapState): readonly number[] {
  const live: number[] = [];
  for (let id = 1; id < state.serviceIds.end; id++) if (state.frontends.hasAny(id)) live.push(id);
  return live;
}
