import type { IpFamily, ServiceForwarding, ServicePortKey, TrafficPolicy } from '@switchyard/core';
import { type Element, frontendKey, splitElementId } from './elements.ts';
import { endpointSetId, handleId } from './handles.ts';
import { elementObjects, intervalObjects, type ObjectName, suffixOf, type TableName } from './names.ts';
import type { ServicePlace } from './render-service.ts';
import type { NftTransport } from './transport.ts';

/** Everything one family has in the kernel. */
export interface KernelState {
  readonly elements: readonly Element[];
  readonly settings: ReadonlyMap<ObjectName, readonly string[]>;
}

/** A table that was just made. */
export const emptyKernel: KernelState = { elements: [], settings: new Map() };

/** Reads one family of our table. Objects that are not there count as empty; the next write will say so. */
export async function readKernel(
  transport: NftTransport,
  table: TableName,
  family: IpFamily,
  signal: AbortSignal,
): Promise<KernelState> {
  const suffix = suffixOf(family);
  const elements: Element[] = [];
  for (const object of elementObjects) {
    const read = (await transport.readElements({ table, object, suffix }, signal)) ?? [];
    for (const element of read) elements.push(element);
  }
  const settings = new Map<ObjectName, readonly string[]>();
  for (const object of intervalObjects) {
    const read = await transport.readIntervals({ table, object, suffix }, signal);
    settings.set(`${object}${suffix}`, read ?? []);
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
 * table changes as little as possible. Where two services lead to one id the first one keeps it. A service whose
 * frontends are not there keeps the id in `known`, if nobody else has it.
 */
export function recoverPlaces(
  elements: readonly Element[],
  services: ReadonlyMap<ServicePortKey, ServiceForwarding>,
  known: ReadonlyMap<ServicePortKey, ServicePlace>,
): RecoveredPlaces {
  const { idByFrontend, slotsBySet, usedIds } = indexElements(elements);
  const ids = new Map<ServicePortKey, number>();
  const taken = new Set<number>();
  const take = (key: ServicePortKey, candidates: readonly (number | undefined)[]): void => {
    const id = candidates.find((candidate) => candidate !== undefined && !taken.has(candidate));
    if (id === undefined) return;
    taken.add(id);
    ids.set(key, id);
  };
  for (const { key, frontends, protocol } of services.values()) {
    take(
      key,
      frontends.map((frontend) => idByFrontend.get(frontendKey(frontend, protocol))),
    );
  }
  for (const key of services.keys()) if (!ids.has(key)) take(key, [known.get(key)?.id]);
  const slotsOf = (id: number, policy: TrafficPolicy): readonly (string | undefined)[] =>
    slotsBySet.get(endpointSetId(id, policy)) ?? [];
  const places = [...ids].map(([key, id]): [ServicePortKey, ServicePlace] => [
    key,
    { id, slots: { Cluster: slotsOf(id, 'Cluster'), Local: slotsOf(id, 'Local') } },
  ]);
  return { places: new Map(places), usedIds: new Set([...usedIds, ...taken]) };
}

interface IndexedElements {
  readonly idByFrontend: ReadonlyMap<string, number>;
  readonly slotsBySet: ReadonlyMap<number, readonly (string | undefined)[]>;
  readonly usedIds: Set<number>;
}

function indexElements(elements: readonly Element[]): IndexedElements {
  const idByFrontend = new Map<string, number>();
  const slotsBySet = new Map<number, (string | undefined)[]>();
  const usedIds = new Set<number>();
  for (const { id, data } of elements) {
    const { object, key } = splitElementId(id);
    switch (object.slice(0, -1)) {
      case 'frontends':
      case 'nodeports':
        idByFrontend.set(key, handleId(Number(data)));
        usedIds.add(handleId(Number(data)));
        break;
      case 'to-cluster':
      case 'to-local':
        usedIds.add(Number(key));
        break;
      case 'endpoints': {
        const [set = 0, slot = 0] = key.split(' . ').map(Number);
        usedIds.add(Math.floor(set / 2));
        setSlot(slotsBySet, { set, slot, data });
        break;
      }
      default: // hairpin and cluster-ips hold no ids
    }
  }
  return { idByFrontend, slotsBySet, usedIds };
}

interface Slot {
  readonly set: number;
  readonly slot: number;
  readonly data: string;
}

function setSlot(slotsBySet: Map<number, (string | undefined)[]>, { set, slot, data }: Slot): void {
  const slots = slotsBySet.get(set) ?? [];
  slots[slot] = data;
  slotsBySet.set(set, slots);
}
