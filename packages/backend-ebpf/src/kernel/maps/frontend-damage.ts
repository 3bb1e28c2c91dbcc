import type { BpfEntries } from '@switchyard/native';
import { bytesOf, wordsOf } from '../../render/address-words.ts';
import { FrontendDigest } from '../../render/frontend-digest.ts';
import { keyWords } from '../../render/frontend-digest.ts';
import { noEntry } from './frontend-index.ts';
import type { MapState } from './map-state.ts';

/** A frontend that differs in the kernel. `added`: by the key, because the record has no such entry; otherwise by the entry. */
export type FrontendFault =
  | { readonly kind: 'added'; readonly key: Uint32Array }
  | { readonly kind: 'edited' | 'deleted'; readonly entry: number };

/** Result of comparing sums. `changing`: an apply wrote in between, so the sums say nothing. */
export type FrontendsState = 'whole' | 'damaged' | 'changing';

/** Reads all frontends, some thousand with each step, and returns whether they are what was written. */
export function* sumFrontends(state: MapState): Generator<undefined, FrontendsState, undefined> {
  const { frontends } = state;
  const map = state.maps.frontends;
  const { changes } = frontends;
  const found = new FrontendDigest();
  for (const { keys, values, count } of map.slices()) {
    const keyNumbers = wordsOf(keys);
    const valueNumbers = wordsOf(values);
    for (let index = 0; index < count; index++) found.add(keyNumbers, index * keyWords, valueNumbers, index * 2);
    yield undefined;
    if (state.maps.frontends !== map) return 'changing';
  }
  if (frontends !== state.frontends || frontends.changes !== changes) return 'changing';
  return found.equals(frontends.digest) ? 'whole' : 'damaged';
}

/** Yields differences of `frontends` from the record. At the end looks for absent entries, until `limit` are found. */
export function* frontendFaults(state: MapState, limit: number): Generator<readonly FrontendFault[], void, undefined> {
  const map = state.maps.frontends;
  const found = new Uint8Array(state.frontends.end);
  let count = 0;
  for (const slice of map.slices()) {
    const { faults, known } = compare(state, slice, found);
    count += known;
    yield faults;
    if (state.maps.frontends !== map) return; // the map has grown, and this one is closed
  }
  if (count !== state.frontends.size) yield missing(state, found, limit);
}

/** Writes an entry again as it was, or deletes what was added. Throws what the kernel said. */
export function repairFrontend({ frontends, maps }: MapState, fault: FrontendFault): void {
  if (fault.kind === 'added') {
    maps.frontends.delete(bytesOf(fault.key));
    return;
  }
  const value = Uint32Array.of(frontends.serviceOf(fault.entry), frontends.restOf(fault.entry));
  maps.frontends.update(bytesOf(frontends.keyOf(fault.entry)), bytesOf(value));
}

/** Compares one slice and marks its entries in `found`. `known`: number of entries that are in the record. */
function compare(
  { frontends }: MapState,
  { keys, values, count }: BpfEntries,
  found: Uint8Array,
): { readonly faults: readonly FrontendFault[]; readonly known: number } {
  const keyNumbers = wordsOf(keys);
  const valueNumbers = wordsOf(values);
  const faults: FrontendFault[] = [];
  let known = 0;
  for (let index = 0; index < count; index++) {
    const entry = frontends.find(keyNumbers, index * keyWords);
    if (entry === noEntry) {
      faults.push({ kind: 'added', key: keyNumbers.slice(index * keyWords, (index + 1) * keyWords) });
      continue;
    }
    found[entry] = 1;
    known++;
    const isSame =
      frontends.serviceOf(entry) === valueNumbers[index * 2] && frontends.restOf(entry) === valueNumbers[index * 2 + 1];
    if (!isSame) faults.push({ kind: 'edited', entry });
  }
  return { faults, known };
}

/** Entries that the kernel lacks. Looks each up, because a slice also misses entries that were written in between. */
function missing({ frontends, maps }: MapState, found: Uint8Array, limit: number): readonly FrontendFault[] {
  const faults: FrontendFault[] = [];
  for (const entry of frontends.entries()) {
    if (faults.length >= limit) break;
    if (found[entry] === 1 || maps.frontends.lookup(bytesOf(frontends.keyOf(entry))) !== undefined) continue;
    faults.push({ kind: 'deleted', entry });
  }
  return faults;
}
