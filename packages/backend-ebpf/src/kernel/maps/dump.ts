import { addressAndPort, compareTexts, sourceClasses } from '@switchyard/core';
import type { MapSet } from '../kernel.ts';
import {
  actionBits,
  actions,
  endpointFlags,
  frontendFlags,
  masqueradeBit,
  noId,
  sizeOf,
  sourceClassIndex,
} from '../../render/layouts.ts';
import { addressAt, mappedWord, portBits } from '../../render/address-words.ts';
import { isGuard } from './adopt.ts';
import { type FoundEndpoint, type FoundFrontend, isWildcard, MapReader, placeOf, protocolOf } from './read-maps.ts';

const actionNames: ReadonlyMap<number, string> = new Map(
  Object.entries(actions).map(([name, number]) => [number, name] as const),
);
type SetName = 'cluster' | 'local';
const setNames: readonly SetName[] = ['cluster', 'local'];
const flagOfSet: Readonly<Record<SetName, number>> = {
  cluster: endpointFlags.inCluster,
  local: endpointFlags.inLocal,
};
const rangeWords = sizeOf('source_range_key') / 4;

/** Maps as sorted lines without ids: equal tables give equal dumps. Names a service by its first frontend. */
export function dumpMaps(maps: MapSet): string {
  const reader = new MapReader(maps);
  const found = reader.frontends();
  const names = namesOf(found);
  const nameOf = (service: number): string => names.get(service) ?? 'no Service';
  const lines = [
    ...found.map((frontend) => frontendLine(frontend, nameOf(frontend.service))),
    ...[...names].flatMap(([service, name]) => serviceLines(reader, service, name)),
    ...rangeLines(maps, names),
  ];
  return lines.length === 0 ? '' : `${lines.sort(compareTexts).join('\n')}\n`;
}

function namesOf(found: readonly FoundFrontend[]): ReadonlyMap<number, string> {
  const names = new Map<number, string>();
  for (const { key, service } of found) {
    if (isGuard(key) || service === noId) continue;
    const name = textOf(key);
    const known = names.get(service);
    if (known === undefined || compareTexts(name, known) < 0) names.set(service, name);
  }
  return names;
}

function frontendLine({ key, actions: bits }: FoundFrontend, name: string): string {
  if (isGuard(key)) return `guard ${addressAt(key, 0)}`;
  const decisions = sourceClasses.map((source) => {
    const action = bits >>> (sourceClassIndex[source] * actionBits);
    const masquerade = (action & masqueradeBit) === 0 ? '' : ' masqueraded';
    return `${source} ${actionNames.get(action & (masqueradeBit - 1)) ?? '?'}${masquerade}`;
  });
  if ((bits & frontendFlags.sourceRanges) !== 0) decisions.push('within source ranges');
  if ((bits & frontendFlags.socketsPass) !== 0) decisions.push('not for sockets');
  return `frontend ${textOf(key)} of ${name}: ${decisions.join(', ')}`;
}

function serviceLines(reader: MapReader, id: number, name: string): readonly string[] {
  const service = reader.service(id);
  if (service === undefined) return [`service ${name}: no record`];
  const memberships = new Map<number, Set<SetName>>();
  for (const set of setNames) {
    for (const endpoint of reader.endpointsOf(id, service[set])) {
      const sets = memberships.get(endpoint) ?? new Set();
      memberships.set(endpoint, sets.add(set));
    }
  }
  const lines = [...memberships].map(([endpoint, sets]) =>
    endpointLine(reader.endpoint(endpoint), { id, name, sets: [...sets] }),
  );
  if (service.affinitySeconds > 0) lines.push(`affinity of ${name}: ${service.affinitySeconds} s`);
  return lines;
}

interface Membership {
  readonly id: number;
  readonly name: string;
  readonly sets: readonly SetName[];
}

function endpointLine(record: FoundEndpoint | undefined, { id, name, sets }: Membership): string {
  if (record === undefined || record.service !== id) return `endpoint of ${name}: not its own`;
  const flags = sets.reduce<number>((sum, set) => sum | flagOfSet[set], endpointFlags.alive);
  const place = addressAndPort(addressAt(record.words, record.at), portBits(record.portBits));
  const isRight = record.flags === flags;
  return `endpoint ${place} of ${name}: ${sets.join(', ')}${isRight ? '' : `, flags ${record.flags}`}`;
}

function rangeLines(maps: MapSet, names: ReadonlyMap<number, string>): readonly string[] {
  const { count, keys } = maps.source_ranges.entries();
  const words = new Uint32Array(keys.slice().buffer);
  return Array.from({ length: count }, (_, index) => {
    const at = index * rangeWords;
    const name = names.get(words[at + 1] ?? noId);
    if (name === undefined) return []; // no packet reaches ranges of a service without frontends
    const isIpv4 = words[at + 4] === mappedWord && words[at + 2] === 0 && words[at + 3] === 0;
    return [`source range ${addressAt(words, at + 2)}/${(words[at] ?? 0) - (isIpv4 ? 128 : 32)} of ${name}`];
  }).flat();
}

/** `10.96.0.10:80/TCP`, or `*:30080/TCP` for a NodePort. */
function textOf(key: Uint32Array): string {
  const { protocol, portBits: bits } = placeOf(key);
  const address = isWildcard(key) ? '*' : addressAt(key, 0);
  return `${addressAndPort(address, portBits(bits))}/${protocolOf(protocol) ?? protocol}`;
}
