import { addressAndPort } from '@switchyard/core';
import { frontendScopes, noId } from '../../render/layouts.ts';
import { addressAt, portBits } from '../../render/address-words.ts';
import type { FrontendFault } from './frontend-damage.ts';
import { endpointWords, type MapState, serviceWords } from './map-state.ts';
import { placeOf, protocolOf } from './read-maps.ts';

/** Returns the name of the Service with an id; undefined for an unused id. */
export type NameOf = (service: number) => string | undefined;

/** Describes a changed word of `services`. */
export function describeService(nameOf: NameOf, word: number): string {
  return `map services: the record of ${ownerText(nameOf, Math.floor(word / serviceWords))} edited`;
}

/** Describes a changed word of `endpoints`. */
export function describeEndpoint(state: MapState, nameOf: NameOf, word: number): string {
  const id = Math.floor(word / endpointWords);
  const at = state.addressOf(id);
  const place = addressAndPort(addressAt(state.endpoints.words, at), portBits(state.portBitsOf(id)));
  return `map endpoints: ${place} of ${ownerText(nameOf, state.ownerOf(id))} edited`;
}

/** Describes a changed slot. */
export function describeSlot(state: MapState, nameOf: NameOf, slot: number): string {
  return `map slots: an endpoint of ${ownerText(nameOf, state.slotOwner(slot))} edited`;
}

/** Describes a changed frontend. */
export function describeFrontend(state: MapState, nameOf: NameOf, fault: FrontendFault): string {
  if (fault.kind === 'added') return `map frontends: ${keyText(fault.key)} added`;
  const service = state.frontends.serviceOf(fault.entry);
  const owner = service === noId ? '' : ` of ${ownerText(nameOf, service)}`;
  return `map frontends: ${keyText(state.frontends.keyOf(fault.entry))}${owner} ${fault.kind}`;
}

function ownerText(nameOf: NameOf, service: number): string {
  return nameOf(service) ?? 'no Service';
}

/** The words of a key: see the layout of `frontend_key`. */
function keyText(key: Uint32Array): string {
  const { scope, protocol: number, portBits: bits } = placeOf(key);
  const protocol = protocolOf(number) ?? number;
  if (scope === frontendScopes.guard) return `guard of ${addressAt(key, 0)}`;
  if (scope === frontendScopes.nodePort) return `NodePort ${portBits(bits)}/${protocol}`;
  return `${addressAndPort(addressAt(key, 0), portBits(bits))}/${protocol}`;
}
