import type { ForwardingTable, TableDelta } from '@switchyard/core';
import type { EbpfKernel } from '../kernel/kernel.ts';
import type { ServiceWriter, WriteResult } from './service-writer.ts';

/** A full apply doubles what is too small until it fits; more rounds than doublings there are. */
const maxRounds = 12;

/** What to apply, to what. */
export interface GrowingApply {
  readonly writer: ServiceWriter;
  readonly kernel: Pick<EbpfKernel, 'growMaps'>;
  readonly table: ForwardingTable;
  /** Undefined: all of the table. */
  readonly delta: TableDelta | undefined;
}

/** Applies, and grows the maps for what found no room; what then still fails has reached the largest sizes. Rejects with `HostError`. */
export async function applyGrowing(
  { writer, kernel, table, delta }: GrowingApply,
  signal: AbortSignal,
): Promise<WriteResult> {
  let result = delta === undefined ? writer.applyFull(table) : writer.applyDelta(delta);
  for (let round = 0; round < maxRounds && result.grow !== undefined; round++) {
    writer.moveTo(await kernel.growMaps(result.grow, signal));
    const again = writer.applyDelta(retryOf(table, result));
    const failed = new Map(again.failed);
    result = { ...again, failed, writes: result.writes + again.writes, gone: [...result.gone, ...again.gone] };
  }
  return result;
}

/** All that failed, for whatever reason. */
function retryOf(table: ForwardingTable, { failed }: WriteResult): TableDelta {
  const keys = [...failed.keys()];
  return {
    upserted: keys.flatMap((key) => table.services.get(key) ?? []),
    removed: keys.filter((key) => !table.services.has(key)),
    settingsChanged: false,
  };
}
