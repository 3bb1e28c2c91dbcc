import { type ElementId, elementId } from '../render/elements.ts';
import { countedObjects, dropSets, type FamilySuffix, type TableName } from '../render/names.ts';
import type { NftTransport } from './transport.ts';

/** What every counter of a family's table says, without those at 0; undefined when the table is not whole. */
export async function readCounts(
  transport: Pick<NftTransport, 'readCounters'>,
  table: TableName,
  suffix: FamilySuffix,
  signal: AbortSignal,
): Promise<ReadonlyMap<ElementId, number> | undefined> {
  const reading = new Map<ElementId, number>();
  for (const object of [...countedObjects, ...dropSets]) {
    const counters = await transport.readCounters({ table, object, suffix }, signal);
    if (counters === undefined) return undefined;
    for (const [key, packets] of counters) if (packets > 0) reading.set(elementId(`${object}${suffix}`, key), packets);
  }
  return reading;
}
