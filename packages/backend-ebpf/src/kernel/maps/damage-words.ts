import { frontendScopes, noId } from '../../render/layouts.ts';
import { addressAt } from '../../render/address-words.ts';
import type { FrontendFault } from './frontend-damage.ts';
import { endpointWords, type MapState, serviceWords } from './map-state.ts';
import { protocolNumbers } from '../../render/render-service.ts';

/** The name of the Service with an id; undefined for an id that nobody has. */
export type NameOf = (service: number) => string | undefined;

/** What became of a word of `services`, in words. */
export function describeService(nameOf: NameOf, word: number): string {
  return `map services: the record of ${ownerText(nameOf, Math.floor(word / serviceWords))} edited`;
}

/** What became of a word of `endpoints`, in words. */
export function describeEndpoint(state: MapState, nameOf: NameOf, word: number): string {
  const id = Math.floor(word / endpointWords);
  const at = state.addressOf(id);
  const place = placeText(addressAt(state.endpoints.words, at), state.portBitsOf(id));
  return `map endpoints: ${place} of ${ownerText(nameOf, state.ownerOf(id))} edited`;
}

/** What became of a slot, in words. */
export function describeSlot(state: MapState, nameOf: NameOf, slot: number): string {
  return `map slots: an endpoint of ${ownerText(nameOf, state.slotOwner(slot))} edited`;
}

/** What became of a frontend, in words. */
export function describeFrontend(state: MapState, nameOf: NameOf, fault: FrontendFault): string {
  if (fault.kind === 'added') return `map frontends: ${keyText(fault.key)} added`;
  const service = state.frontends.serviceOf(fault.entry);
  const owner = service === noId ? '' : ` of ${ownerText(nameOf, service)}`;
  return `map frontends: ${keyText(state.frontends.keyOf(fault.entry))}${owner} ${fault.kind}`;
}

function ownerText(nameOf: NameOf, service: number): string {
  return nameOf(service) ?? 'nobody';
}

/** The words of a key: see the layout of `frontend_key`. */
function keyText(key: Uint32Array): string {
  const bits = key[4] ?? 0;
  const scope = bits >>> 24;
  const number = (bits >>> 16) & 0xff;
  const protocol = Object.entries(protocolNumbers).find(([, one]) => one === number)?.[0] ?? String(number);
  if (scope === frontendScopes.guard) return `guard of ${addressAt(key, 0)}`;
  if (scope === frontendScopes.nodePort) return `NodePort ${hostOrder(bits)}/${protocol}`;
  return `${placeText(addressAt(key, 0), bits)}/${protocol}`;
}

function placeText(address: string, bits: number): string {
  return `${address.includes(':') ? `[${address}]` : address}:${hostOrder(bits)}`;
}

/** The lower half is a port in network order. */
function hostOrder(bits: number): number {
  return ((bits & 0xff) << 8) | ((bits >>> 8) & 0xff);
}
