import type { IpFamily, ServiceForwarding, ServicePortKey } from '@switchyard/core';
import { type Element, type ElementId, frontendId, splitElementId } from './elements.ts';
import { endpointSetId, handleId } from './handles.ts';
import { elementObjects, intervalObjects, objectKind, type ObjectName, suffixOf, type TableName } from './names.ts';
import type { NftClient } from './nft-cli/nft-client.ts';
import { parseElements, parseIntervals } from './nft-cli/parse-elements.ts';
import type { ServicePlace } from './render-service.ts';

/** Everything one family has in the kernel. */
export interface KernelState {
  readonly elements: readonly Element[];
  readonly settings: ReadonlyMap<ObjectName, readonly string[]>;
}

/** Reads one family of our table. Objects that are not there count as empty; the next write will say so. */
export async function readKernel(
  client: NftClient,
  table: TableName,
  family: IpFamily,
  signal: AbortSignal,
): Promise<KernelState> {
  const suffix = suffixOf(family);
  const elements: Element[] = [];
  for (const object of elementObjects) {
    const name = `${object}${suffix}` as const;
    const listed = await client.elements({ table, kind: objectKind(object), name }, signal);
    for (const element of parseElements(object, suffix, listed ?? [])) elements.push(element);
  }
  const settings = new Map<ObjectName, readonly string[]>();
  for (const object of intervalObjects) {
    const name = `${object}${suffix}` as const;
    settings.set(name, parseIntervals((await client.elements({ table, kind: 'set', name }, signal)) ?? []));
  }
  return { elements, settings };
}

/** What a process with no memory finds out about ids. */
export interface RecoveredPlaces {
  readonly places: ReadonlyMap<ServicePortKey, ServicePlace>;
  /** Every service id that occurs, also those of services that are gone. */
  readonly usedIds: ReadonlySet<number>;
}

/**
 * Finds each service's id behind its frontends and its endpoints' slots behind the id, so that adopting a
 * table changes as little as possible. Where two services lead to one id the first one keeps it.
 */
export function recoverPlaces(
  elements: readonly Element[],
  services: Iterable<ServiceForwarding>,
  family: IpFamily,
): RecoveredPlaces {
  const suffix = suffixOf(family);
  const idByFrontend = new Map<ElementId, number>();
  const slotsBySet = new Map<number, (string | undefined)[]>();
  const usedIds = new Set<number>();
  for (const { id, data } of elements) {
    const { object, key } = splitElementId(id);
    if (object === `frontends${suffix}` || object === `nodeports${suffix}`) {
      idByFrontend.set(id, handleId(Number(data)));
      usedIds.add(handleId(Number(data)));
    } else if (object === `to-cluster${suffix}` || object === `to-local${suffix}`) {
      usedIds.add(Number(key));
    } else if (object === `endpoints${suffix}`) {
      const [set = 0, slot = 0] = key.split(' . ').map(Number);
      usedIds.add(Math.floor(set / 2));
      setSlot(slotsBySet, set, slot, data);
    }
  }
  const places = new Map<ServicePortKey, ServicePlace>();
  const taken = new Set<number>();
  for (const service of services) {
    const id = service.frontends
      .map((frontend) => idByFrontend.get(frontendId(frontend, service.protocol, suffix)))
      .find((candidate) => candidate !== undefined && !taken.has(candidate));
    if (id === undefined) continue;
    taken.add(id);
    const slotsOf = (policy: 'Cluster' | 'Local'): readonly (string | undefined)[] =>
      slotsBySet.get(endpointSetId(id, policy)) ?? [];
    places.set(service.key, { id, slots: { Cluster: slotsOf('Cluster'), Local: slotsOf('Local') } });
  }
  return { places, usedIds };
}

function setSlot(slotsBySet: Map<number, (string | undefined)[]>, set: number, slot: number, data: string): void {
  const slots = slotsBySet.get(set);
  if (slots === undefined) {
    const created: (string | undefined)[] = [];
    created[slot] = data;
    slotsBySet.set(set, created);
  } else {
    slots[slot] = data;
  }
}
