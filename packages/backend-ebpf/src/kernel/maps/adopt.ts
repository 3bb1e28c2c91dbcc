import type { ForwardingTable, ServiceForwarding, ServicePortKey } from '@switchyard/core';
import { endpointFlags, frontendScopes, noId } from '../../render/layouts.ts';
import type { FrontendWriter } from './frontend-writer.ts';
import { keyWords } from '../../render/frontend-digest.ts';
import { FrontendIndex, noEntry } from './frontend-index.ts';
import { IdPool } from './id-pool.ts';
import { endpointWords, type MapState, serviceWords, setWords } from './map-state.ts';
import { guardKey, keyOf, protocolNumbers } from '../../render/render-service.ts';
import { SlotPool } from './slot-pool.ts';

/** Placeholder for the value of an entry without a valid service. It equals no rendered value, so the entry is rewritten or deleted. */
const wrong = 1;

/** Adopts the maps of an earlier process. Records invalid content, so that the next apply rewrites it. */
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

/** Clears the flags of endpoints whose service has no frontend, so that no flow stays with them. */
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

/** Claims the range of each set. A set whose range is invalid or overlaps another is published again. */
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
 * The id of each Service of a table: one whose frontends all belong to the Service. An id is not reused when a frontend moved from one
 * Service to another: a packet to that frontend would reach endpoints of the other Service until the entry is overwritten.
 * Call `removeUnwanted` first, so that only wanted frontends count.
 */
export function claimServices(state: MapState, table: ForwardingTable): ReadonlyMap<ServicePortKey, number> {
  const { frontends } = state;
  const claimed = new Map<ServicePortKey, number>();
  if (frontends.size === 0) return claimed;
  const taken = new Set<number>();
  for (const service of table.services.values()) {
    const own = new Set(entriesOf(state, service));
    own.delete(noEntry);
    for (const entry of own) {
      const id = frontends.serviceOf(entry);
      if (id === noId || taken.has(id) || !frontends.entriesOf(id).every((one) => own.has(one))) continue;
      taken.add(id);
      claimed.set(service.key, id);
      break;
    }
  }
  return claimed;
}

/** Deletes all entries that no Service of a table wants, guards first: a guard without its frontend would refuse its packets. */
export function removeUnwanted(state: MapState, table: ForwardingTable, frontends: FrontendWriter): void {
  if (state.frontends.size === 0) return;
  const isWanted = new Uint8Array(state.frontends.end);
  for (const service of table.services.values()) {
    for (const entry of entriesOf(state, service)) if (entry !== noEntry) isWanted[entry] = 1;
    for (const { kind, address } of service.frontends) {
      if (kind !== 'clusterIP' || address === 'anyNodePortAddress') continue;
      const guard = state.frontends.find(guardKey(address));
      if (guard !== noEntry) isWanted[guard] = 1;
    }
  }
  frontends.refused = () => {}; // the end of the apply tries again, and reports it
  const unwanted = state.frontends.entries().filter((entry) => isWanted[entry] === 0);
  for (const mode of [true, false]) {
    for (const entry of unwanted) {
      if (isGuard(state.frontends.keyOf(entry)) !== mode) continue;
      frontends.delete(undefined, [entry], state.frontends.serviceOf(entry));
    }
  }
}

function entriesOf(state: MapState, { protocol, frontends }: ServiceForwarding): readonly number[] {
  return protocol === 'SCTP' ? [] : frontends.map((frontend) => state.frontends.find(keyOf(frontend, protocol)));
}

/** All services that frontends lead to. */
export function liveServices(state: MapState): readonly number[] {
  const live: number[] = [];
  for (let id = 1; id < state.serviceIds.end; id++) if (state.frontends.hasAny(id)) live.push(id);
  return live;
}

/** Whether the frontends of a service are of UDP; all of them have one protocol. */
export function isUdpService({ frontends }: MapState, id: number): boolean {
  const [entry = noEntry] = frontends.entriesOf(id);
  return entry !== noEntry && (((frontends.keyOf(entry)[4] ?? 0) >>> 16) & 0xff) === protocolNumbers.UDP;
}
