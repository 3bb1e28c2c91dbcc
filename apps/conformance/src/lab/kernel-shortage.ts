import type { Millis } from '@switchyard/core';
import { kernelFiles } from '@switchyard/host';

/** Packets that the kernel has dropped for want of room, in all network namespaces of the machine together. */
interface Counters {
  /** The table of learnt neighbours was full: `net.ipv4.neigh.default.gc_thresh3`, and the same of IPv6. */
  readonly neighbours: number;
  /** A processor's queue of received packets was full: `net.core.netdev_max_backlog`. */
  readonly backlog: number;
}

const files = ['/proc/net/stat/arp_cache', '/proc/net/stat/ndisc_cache', '/proc/net/softnet_stat'] as const;
/** Least time between two readings, in milliseconds. */
const pause = 200;

interface Reading extends Counters {
  readonly at: Millis;
}

/** Remembers when the kernel dropped packets for want of room. No proxy can do anything about these, and an answer that is lost looks like silence. */
export class KernelShortage {
  readonly #file: (path: string) => string | undefined;
  /** Readings that differ from the one before, and the last one. */
  #readings: Reading[] = [];

  /** `file`: the text of a file. Only the machine's own namespace has the tables of neighbours: elsewhere they are not counted. */
  constructor(file: (path: string) => string | undefined = kernelFiles().read) {
    this.#file = file;
  }

  /** Reads the counters, unless it did a moment ago. */
  note(at: Millis): void {
    const last = this.#readings.at(-1);
    if (last === undefined || at - last.at >= pause) this.read(at);
  }

  /** Reads the counters. */
  read(at: Millis): void {
    const [before, last] = this.#readings.slice(-2);
    const [v4 = '', v6 = '', softnet = ''] = files.map(this.#file);
    const now = { at, neighbours: sumOf(v4, 'table_fulls') + sumOf(v6, 'table_fulls'), backlog: droppedOf(softnet) };
    if (last !== undefined && before !== undefined && isEqual(last, now) && isEqual(last, before)) this.#readings.pop();
    this.#readings.push(now);
  }

  /** The shortages between two times, as text; undefined: none. The counters must have been read after `to`. */
  between(from: Millis, to: Millis): string | undefined {
    const first = this.#readings.findLast(({ at }) => at <= from) ?? this.#readings[0];
    const last = this.#readings.find(({ at }) => at >= to) ?? this.#readings.at(-1);
    if (first === undefined || last === undefined) return undefined;
    const neighbours = last.neighbours - first.neighbours;
    const backlog = last.backlog - first.backlog;
    const texts = [
      ...(neighbours > 0 ? ['its table of neighbours was full (net.ipv4.neigh.default.gc_thresh3)'] : []),
      ...(backlog > 0 ? ['a queue of received packets was full (net.core.netdev_max_backlog)'] : []),
    ];
    return texts.length === 0 ? undefined : texts.join(', and ');
  }

  /** Forgets what was before a time. */
  forget(before: Millis): void {
    const index = this.#readings.findLastIndex(({ at }) => at <= before);
    if (index > 0) this.#readings = this.#readings.slice(index);
  }
}

function isEqual(one: Counters, other: Counters): boolean {
  return one.neighbours === other.neighbours && one.backlog === other.backlog;
}

/** Sum of a column over all processors; the first line has the names. Counters are hexadecimal. */
function sumOf(text: string, column: string): number {
  const [head = '', ...rows] = text.trim().split('\n');
  const index = head.split(/\s+/).indexOf(column);
  return index < 0 ? 0 : total(rows, index);
}

/** The second column of `softnet_stat`, which has no names. */
function droppedOf(text: string): number {
  return total(text.trim().split('\n'), 1);
}

function total(rows: readonly string[], index: number): number {
  return rows.reduce((sum, row) => sum + (Number.parseInt(row.split(/\s+/)[index] ?? '', 16) || 0), 0);
}
