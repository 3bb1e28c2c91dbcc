import { readFile } from 'node:fs/promises';
import { InvariantError } from '@switchyard/core';
import { attachTracepoint, type BpfMap, type BpfObject, loadEmbedded } from '@switchyard/native';
import { readDropReasons } from './drop-reasons.ts';
import { type DropRecord, readDropRecord, recordSizes } from './drop-records.ts';
import { type DropPlace, type KernelFunctions, parseKernelFunctions } from './kernel-functions.ts';

/** Packets dropped since the last reading. */
export interface NewDrops {
  /** One per flow, reason and namespace; `count` is of this reading. */
  readonly drops: readonly PlacedDrop[];
  /** Packets that were counted, but whose entries were evicted before they could be read. */
  readonly missed: number;
}

/** A record with its place in the kernel. */
export interface PlacedDrop extends DropRecord {
  readonly place: DropPlace;
}

/** A program at the tracepoint `kfree_skb` and its maps. Disposing it ends the counting and frees both. */
export interface DropCounter extends Disposable {
  /** Throws `NativeError`. */
  read(): NewDrops;
}

/**
 * Starts counting the packets that this kernel drops, of all network namespaces. Needs Linux 5.17 with BTF, and CAP_BPF with CAP_PERFMON;
 * with CAP_SYSLOG it also finds the place of each drop. Throws `HostError` (`BpfLoadFailure`, `NativeMissingError` among them).
 */
export async function openDropCounter(signal: AbortSignal): Promise<DropCounter> {
  const [types, kallsyms] = await Promise.all([
    readFile('/sys/kernel/btf/vmlinux', { signal }),
    readFile('/proc/kallsyms', { encoding: 'latin1', signal }),
  ]);
  const reasons = readDropReasons(types);
  const functions = parseKernelFunctions(kallsyms);
  const unspecified = [...reasons].find(([, name]) => name === 'NOT_SPECIFIED')?.[0] ?? 0;
  const object = loadEmbedded('drops', { constants: { last_unspecified: unspecified } });
  try {
    const program = object.programs.get('count_drop');
    if (program === undefined) throw new InvariantError('drops.bpf.o has no program count_drop');
    writeFunctions(object.maps.get('functions'), functions);
    return new OpenCounter(object, attachTracepoint(program), { reasons, functions });
  } catch (error) {
    object[Symbol.dispose]();
    throw error;
  }
}

/** `struct sy_function` of each. */
function writeFunctions(map: BpfMap | undefined, { speaking }: KernelFunctions): void {
  for (const [index, { start, end }] of speaking.slice(0, map?.shape.maxEntries).entries()) {
    map?.update(bytesOf(Uint32Array.of(index)), bytesOf(BigUint64Array.of(start, end)));
  }
}

function bytesOf(numbers: Uint32Array | BigUint64Array): Uint8Array {
  return new Uint8Array(numbers.buffer);
}

interface Names {
  readonly reasons: ReadonlyMap<number, string>;
  readonly functions: KernelFunctions;
}

class OpenCounter implements DropCounter {
  readonly #object: BpfObject;
  readonly #link: Disposable;
  readonly #names: Names;
  /** Counts at the last reading, by the bytes of the key. Never more than the map has entries. */
  #before: ReadonlyMap<string, number> = new Map();
  /** Packets that were read or reported as missed. */
  #reported = 0;

  constructor(object: BpfObject, link: Disposable, names: Names) {
    this.#object = object;
    this.#link = link;
    this.#names = names;
  }

  read(): NewDrops {
    const counted = this.#counted(); // first: what comes in between is in the entries, so nothing seems to be missed
    const { keys, values, count } = this.#map('drops').entries();
    const now = new Map<string, number>();
    const drops: PlacedDrop[] = [];
    for (let index = 0; index < count; index++) {
      const key = keys.subarray(index * recordSizes.key, (index + 1) * recordSizes.key);
      const value = values.subarray(index * recordSizes.value, (index + 1) * recordSizes.value);
      const identity = Buffer.from(key).toString('latin1');
      const total = Number(new DataView(value.buffer, value.byteOffset).getBigUint64(0, true));
      now.set(identity, total);
      const before = this.#before.get(identity) ?? 0;
      // An entry that was evicted and made anew begins at 1.
      const fresh = total >= before ? total - before : total;
      if (fresh === 0) continue;
      const record = readDropRecord(key, value, this.#names.reasons);
      if (record === undefined) continue;
      drops.push({ ...record, count: fresh, place: this.#names.functions.placeOf(record.stack) });
    }
    this.#before = now;
    this.#reported += drops.reduce((sum, drop) => sum + drop.count, 0);
    const missed = Math.max(0, counted - this.#reported);
    this.#reported += missed;
    return { drops, missed };
  }

  /** Packets counted on all CPUs. */
  #counted(): number {
    const perCpu = this.#map('counted').lookup(new Uint8Array(4)) ?? new Uint8Array(0);
    const view = new DataView(perCpu.buffer, perCpu.byteOffset, perCpu.byteLength);
    let sum = 0;
    for (let at = 0; at < view.byteLength; at += 8) sum += Number(view.getBigUint64(at, true));
    return sum;
  }

  #map(name: string): BpfMap {
    const map = this.#object.maps.get(name);
    if (map === undefined) throw new InvariantError(`drops.bpf.o has no map ${name}`);
    return map;
  }

  [Symbol.dispose](): void {
    this.#link[Symbol.dispose]();
    this.#object[Symbol.dispose]();
  }
}
