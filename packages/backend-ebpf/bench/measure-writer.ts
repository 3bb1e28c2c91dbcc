import { type ForwardingTable, type ServiceForwarding, systemClock } from '@switchyard/core';
import { type MapSet, ServiceWriter, type WriteResult } from '../src/index.ts';
import { withoutLast } from './cluster.ts';

/** Cost of writing one table. Times in milliseconds, those of changes in microseconds. */
export interface WriterFigures {
  readonly services: number;
  /** From the table to maps that are full. */
  readonly load: number;
  readonly loadWrites: number;
  readonly changes: { readonly p50: number; readonly p99: number; readonly max: number; readonly stores: number };
  /** A full apply of what is there already: compares everything. */
  readonly unchanged: number;
  /** A process without memory reads everything back. */
  readonly adoption: number;
  /** Everything compared with the copy. */
  readonly damage: number;
  /** MB that the writer and the mapped arrays take; NaN without `--expose-gc`. */
  readonly resident: number;
  readonly heap: number;
}

/** Loads a table into new maps, changes an endpoint `changes` times, adopts. `open` makes maps in which it fits. */
export function measureWriter(
  open: (table: ForwardingTable) => MapSet,
  table: ForwardingTable,
  changes: number,
): WriterFigures {
  const maps = open(table);
  const before = memory();
  const writer = new ServiceWriter(maps, { clock: systemClock });
  let result: WriteResult | undefined;
  const load = time(() => {
    result = writer.applyFull(table);
  });
  if (result === undefined || result.failed.size > 0)
    throw new Error(`the bench was not written: ${result?.failed.size} failed`);
  const after = memory();
  const times = measureChanges(writer, table, changes);
  const unchanged = time(() => expectNothing(writer.applyFull(table)));
  const damage = time(() => writer.findDamage());
  const adoption = time(() => expectNothing(new ServiceWriter(maps, { clock: systemClock }).applyFull(table)));
  return {
    services: table.services.size,
    load,
    loadWrites: result.writes,
    changes: times,
    unchanged,
    adoption,
    damage,
    resident: after.resident - before.resident,
    heap: after.heap - before.heap,
  };
}

function expectNothing({ writes, failed }: WriteResult): void {
  if (writes > 0 || failed.size > 0)
    throw new Error(`there was nothing to write: ${writes} writes, ${failed.size} failed`);
}

/** One endpoint less here, one more there, all over the table. */
function measureChanges(writer: ServiceWriter, table: ForwardingTable, count: number): WriterFigures['changes'] {
  const services = [...table.services.values()];
  const changed = new Map<number, ServiceForwarding>();
  const times: number[] = [];
  let stores = 0;
  const change = (index: number, next: ServiceForwarding): void => {
    const delta = { upserted: [next], removed: [], settingsChanged: false };
    let result: WriteResult | undefined;
    times.push(time(() => (result = writer.applyDelta(delta))));
    if (result === undefined || result.failed.size > 0)
      throw new Error('a change found no room; make fewer in a second');
    stores = result.writes;
  };
  for (let round = 0; round < count; round++) {
    const index = ((round >> 1) * 7919) % services.length;
    const whole = services[index] as ServiceForwarding;
    const next = changed.has(index) ? whole : withoutLast(whole);
    if (next === whole) changed.delete(index);
    else changed.set(index, next);
    change(index, next);
  }
  for (const index of changed.keys()) change(index, services[index] as ServiceForwarding);
  times.sort((a, b) => a - b);
  const at = (share: number): number =>
    1000 * (times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0);
  return { p50: at(0.5), p99: at(0.99), max: at(1), stores };
}

function time(work: () => void): number {
  const start = performance.now();
  work();
  return performance.now() - start;
}

function memory(): { readonly resident: number; readonly heap: number } {
  if (globalThis.gc === undefined) return { resident: Number.NaN, heap: Number.NaN };
  for (let round = 0; round < 3; round++) globalThis.gc();
  return { resident: process.memoryUsage.rss() / 1e6, heap: process.memoryUsage().heapUsed / 1e6 };
}
