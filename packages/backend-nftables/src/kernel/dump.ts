import { setImmediate } from 'node:timers/promises';
import {
  addressAndPort,
  assertNever,
  type Decision,
  type IpFamily,
  type SourceClass,
  sourceClasses,
} from '@switchyard/core';
import type { KernelState } from './adopt.ts';
import {
  decisionsOf,
  type ElementId,
  handleClass,
  handleId,
  hex,
  isRestricted,
  splitElementId,
} from '../render/elements.ts';
import { parseChainName } from '../render/class-chains.ts';
import { type FamilySuffix, setMapOf, suffixOf } from '../render/names.ts';
import { slotsOfClass } from '../render/place-service.ts';

export interface KernelDump {
  readonly kernel: KernelState;
  /** Class to the name of its chain. */
  readonly classes: ReadonlyMap<number, string>;
  readonly family: IpFamily;
}

/** A few milliseconds of work. */
const frontendsPerTurn = 500;

/** Kernel state as sorted text without ids and slots: equal forwarding is equal text. Yields in between. */
export async function dumpKernel({ kernel, classes, family }: KernelDump, signal: AbortSignal): Promise<string> {
  const suffix = suffixOf(family);
  const byObject = new Map<string, Map<string, string>>();
  for (const [id, data] of kernel.elements) addElement(byObject, id, data);
  await setImmediate(undefined, { signal });
  const of = (object: string): ReadonlyMap<string, string> => byObject.get(`${object}${suffix}`) ?? new Map();
  const sets: Sets = { kernel, classes, suffix };
  const settings = [...kernel.settings].map(([object, content]) => `${object}: ${content.join(', ') || 'none'}`);
  const describe = (name: string, handle: string, more: readonly string[]): string => {
    const lines = frontendLines(Number(handle), (object, id) => setText(of(object).get(hex(id)), sets));
    return [name, ...[...more, ...lines].map((line) => `  ${line}`)].join('\n');
  };
  const sources = sourcesByPlace(of('fw-allow').keys());
  const frontends: string[] = [];
  for (const [key, data] of of('frontends')) {
    const ranges = sourceLines(sources.get(key), handleClass(Number(data)));
    frontends.push(describe(`frontend ${placeText(key)}`, data, ranges));
    if (frontends.length % frontendsPerTurn === 0) await setImmediate(undefined, { signal });
  }
  const nodePorts = [...of('nodeports')].map(([key, data]) => describe(`nodeport ${placeText(key)}`, data, []));
  const foreign = [...sources.keys()].filter((place) => !of('frontends').has(place));
  const noFrontend = foreign.map((place) => `source ranges of no frontend: ${placeText(place)}`);
  const clusterIps = [...of('cluster-ips').keys()].map((key) => `cluster-ip ${key}`);
  const hairpin = [...of('hairpin').keys()].map((key) => `hairpin ${placeText(key.slice(key.indexOf(' . ') + 3))}`);
  const sections = [settings, frontends, nodePorts, clusterIps, hairpin, noFrontend];
  return sections.flatMap((section) => section.sort().map((line) => `${line}\n`)).join('');
}

function addElement(byObject: Map<string, Map<string, string>>, id: ElementId, data: string): void {
  const { object, key } = splitElementId(id);
  const elements = byObject.get(object);
  if (elements === undefined) byObject.set(object, new Map([[key, data]]));
  else elements.set(key, data);
}

/** The decisions, equal ones joined, then the endpoint sets they lead to. */
function frontendLines(handle: number, textOfSet: (object: string, id: number) => string): string[] {
  const decisions = decisionsOf(handleClass(handle));
  if (decisions === undefined) return [`unknown class ${hex(handleClass(handle))}`];
  const sources = new Map<string, SourceClass[]>();
  const used = new Set<string>();
  for (const source of sourceClasses) {
    const text = decisionText(decisions[source]);
    sources.set(text, [...(sources.get(text) ?? []), source]);
    const decision = decisions[source];
    if (decision.kind === 'forward') used.add(setMapOf[decision.to]);
  }
  return [
    ...[...sources].map(([text, who]) => `${who.length === sourceClasses.length ? 'all' : who.join(', ')}: ${text}`),
    ...[...used].sort().map((object) => `${object}: ${textOfSet(object, handleId(handle))}`),
  ];
}

function decisionText(decision: Decision): string {
  switch (decision.kind) {
    case 'forward':
      return `${setMapOf[decision.to]}${decision.masquerade ? ', masquerade' : ''}`;
    case 'reject':
    case 'drop':
      return decision.kind;
    default:
      return assertNever(decision);
  }
}

interface Sets {
  readonly kernel: KernelState;
  readonly classes: KernelDump['classes'];
  readonly suffix: FamilySuffix;
}

function setText(handle: string | undefined, { kernel, classes, suffix }: Sets): string {
  if (handle === undefined) return 'leads nowhere';
  const set = handleId(Number(handle));
  const chain = parseChainName(classes.get(handleClass(Number(handle))) ?? '', suffix);
  const isKept = chain?.kind === 'affinity';
  const row = isKept ? kernel.affinity.row(set) : (kernel.slots.get(set) ?? []);
  const slots = row.filter((slot) => slot !== undefined);
  const count = isKept ? chain.slots : slotsOfClass(handleClass(Number(handle)));
  if (slots.length !== count) return `${slots.length} slots where ${count ?? 'none'} are expected`;
  const endpoints = [...new Set(slots)].map(addressText).sort().join(' ');
  return isKept ? `${endpoints}, each client keeps its own for ${chain.timeoutSeconds} s` : endpoints;
}

/** `address . protocol . port` or `protocol . port` as people write it. */
function placeText(key: string): string {
  const parts = key.split(' . ');
  const [port = '', protocol = '', address] = parts.reverse();
  const place = address === undefined ? port : addressText(`${address} . ${port}`);
  return `${place}/${protocol.toUpperCase()}`;
}

function addressText(data: string): string {
  const [address = '', port = ''] = data.split(' . ');
  return addressAndPort(address, port);
}

/** Allowed sources by the frontend they belong to, from the keys of `fw-allow`. */
function sourcesByPlace(keys: Iterable<string>): ReadonlyMap<string, readonly string[]> {
  const sources = new Map<string, string[]>();
  for (const key of keys) {
    const at = key.lastIndexOf(' . ');
    const place = key.slice(0, at);
    sources.set(place, [...(sources.get(place) ?? []), key.slice(at + 3)]);
  }
  return sources;
}

/** Lines of a dump about a frontend's sources; none for an unrestricted frontend. */
function sourceLines(ranges: readonly string[] = [], frontendClass: number): readonly string[] {
  const texts = [...ranges].sort();
  if (isRestricted(frontendClass)) return [`sources: ${texts.join(', ') || 'none'}`];
  return texts.length === 0 ? [] : [`sources: ${texts.join(', ')}, without effect`];
}
