import type { Protocol } from '@switchyard/core';
import type { MapSet } from '../kernel.ts';
import { frontendScopes, noId, packed } from '../../render/layouts.ts';
import { wordsOf } from '../../render/address-words.ts';
import { keyWords } from '../../render/frontend-digest.ts';
import { endpointOwnerWord, endpointStateWord, endpointWords, serviceStateWord, serviceWords } from './map-state.ts';
import { protocolNumbers } from '../../render/render-service.ts';

/** One entry of `frontends`; `key` are the six words of its key. */
export interface FoundFrontend {
  readonly key: Uint32Array;
  readonly service: number;
  readonly actions: number;
  readonly cookie: number;
}

export interface FoundSelection {
  readonly base: number;
  readonly count: number;
  readonly generation: number;
}

/** A record of `endpoints`; `words` are the whole map, and the record's address begins at `at`. */
export interface FoundEndpoint {
  readonly words: Uint32Array;
  readonly at: number;
  readonly portBits: number;
  readonly flags: number;
  readonly generation: number;
  readonly service: number;
}

export interface FoundService {
  readonly cluster: FoundSelection;
  readonly local: FoundSelection;
  readonly affinitySeconds: number;
  readonly cookie: number;
}

/** Reads the maps as programs do and accepts any bytes. For dumps and tests; allocates objects. */
export class MapReader {
  readonly #maps: MapSet;
  readonly #services: Uint32Array;
  readonly #endpoints: Uint32Array;
  readonly #slots: Uint32Array;

  constructor(maps: MapSet) {
    this.#maps = maps;
    this.#services = wordsOf(maps.services.values());
    this.#endpoints = wordsOf(maps.endpoints.values());
    this.#slots = wordsOf(maps.slots.values());
  }

  frontends(): readonly FoundFrontend[] {
    const { count, keys, values } = this.#maps.frontends.entries();
    const keyNumbers = new Uint32Array(keys.slice().buffer);
    const valueNumbers = new Uint32Array(values.slice().buffer);
    return Array.from({ length: count }, (_, index) =>
      frontendOf(
        keyNumbers.subarray(index * keyWords, (index + 1) * keyWords),
        valueNumbers.subarray(index * 2, index * 2 + 2),
      ),
    );
  }

  frontend(key: Uint32Array): FoundFrontend | undefined {
    const value = this.#maps.frontends.lookup(new Uint8Array(key.slice().buffer));
    return value === undefined ? undefined : frontendOf(key, new Uint32Array(value.slice().buffer));
  }

  /** Undefined for an id beyond the map's size. */
  service(id: number): FoundService | undefined {
    const at = id * serviceWords * 2;
    if (id === noId || at >= this.#services.length) return undefined;
    const state = at + serviceStateWord * 2;
    return {
      cluster: this.#selection(at),
      local: this.#selection(at + 2),
      affinitySeconds: this.#services[state] ?? 0,
      cookie: (this.#services[state + 1] ?? 0) & 0xffff,
    };
  }

  endpoint(id: number): FoundEndpoint | undefined {
    const at = id * endpointWords * 2;
    if (at >= this.#endpoints.length) return undefined;
    const state = this.#endpoints[at + endpointStateWord * 2] ?? 0;
    return {
      words: this.#endpoints,
      at,
      portBits: state & 0xffff,
      flags: state >>> 16,
      generation: this.#endpoints[at + endpointStateWord * 2 + 1] ?? 0,
      service: this.#endpoints[at + endpointOwnerWord * 2] ?? noId,
    };
  }

  /** Endpoint ids in the slots of a set; `noId` for slots of another service and for slots beyond the map. */
  endpointsOf(service: number, { base, count }: FoundSelection): readonly number[] {
    return Array.from({ length: count }, (_, index) => {
      const slot = (base + index) * 2;
      return this.#slots[slot] === service ? (this.#slots[slot + 1] ?? noId) : noId;
    });
  }

  #selection(at: number): FoundSelection {
    const rest = this.#services[at + 1] ?? 0;
    return { base: this.#services[at] ?? 0, count: rest & 0xffff, generation: rest >>> 16 };
  }
}

/** Scope, protocol number and port of a key. */
export function placeOf(key: Uint32Array): {
  readonly scope: number;
  readonly protocol: number;
  readonly portBits: number;
} {
  const word = key[4] ?? 0;
  return { scope: word >>> 24, protocol: (word >>> 16) & 0xff, portBits: word & 0xffff };
}

/** The name of a protocol number; undefined for those that programs do not carry. */
export function protocolOf(number: number): Protocol | undefined {
  if (number === protocolNumbers.TCP) return 'TCP';
  return number === protocolNumbers.UDP ? 'UDP' : undefined;
}

/** Whether a frontend answers at all NodePort addresses. */
export function isWildcard(key: Uint32Array): boolean {
  return placeOf(key).scope === frontendScopes.nodePort;
}

const [, [, actionsShift], [, cookieShift]] = packed.frontend;

function frontendOf(key: Uint32Array, value: Uint32Array): FoundFrontend {
  const rest = value[1] ?? 0;
  return {
    key,
    service: value[0] ?? noId,
    actions: (rest >>> (actionsShift - 32)) & 0xffff,
    cookie: rest >>> (cookieShift - 32),
  };
}
