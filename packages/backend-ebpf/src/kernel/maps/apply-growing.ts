import { type ForwardingTable, HostError, type TableDelta } from '@switchyard/core';
import { withFailed } from '@switchyard/core/engine';
import type { EbpfKernel } from '../kernel.ts';
import { largerSizes, neededSizes } from './map-sizes.ts';
import type { ServiceWriter, WriteResult } from './service-writer.ts';
import { MapFullError } from './set-writer.ts';

/** Maximum number of growths in one apply. No size can be doubled more often. */
const maxRounds = 12;

const noDelta: TableDelta = { upserted: [], removed: [], settingsChanged: false };

/** One apply that may grow the maps. */
export interface GrowingApply {
  readonly writer: ServiceWriter;
  readonly kernel: Pick<EbpfKernel, 'growMaps'>;
  readonly table: ForwardingTable;
  /** Undefined: all of the table. */
  readonly delta: TableDelta | undefined;
  /** As for `ServiceWriter.applyFull`. */
  readonly after?: 'drift' | undefined;
}

/** Applies, and grows the maps. Services fail when maps are largest or memory is short; all others are written. */
export async function applyGrowing(
  { writer, kernel, table, delta, after }: GrowingApply,
  signal: AbortSignal,
): Promise<WriteResult> {
  let result = delta === undefined ? writer.applyFull(table, after) : writer.applyDelta(delta);
  for (let round = 0; round < maxRounds && result.grow !== undefined; round++) {
    try {
      writer.moveTo(await kernel.growMaps(largerSizes(result.grow, neededSizes(table)), signal));
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof HostError)) throw error;
      const failed = new Map([...result.failed].map(([key, cause]) => [key, whyNotWritten(cause, error)]));
      return { ...result, failed };
    }
    const again = writer.applyDelta(withFailed(noDelta, table, result.failed));
    const failed = new Map(again.failed);
    result = { ...again, failed, writes: result.writes + again.writes, gone: [...result.gone, ...again.gone] };
  }
  return result;
}

/** Adds the reason why a full map could not grow. */
function whyNotWritten(failure: Error, growth: HostError): Error {
  if (!(failure instanceof MapFullError)) return failure;
  return new HostError('ebpf.full', `${failure.message}; it could not grow: ${growth.message}`, { cause: growth });
}
