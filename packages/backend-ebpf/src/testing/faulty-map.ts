import { constants } from 'node:os';
import type { Random } from '@switchyard/core';
import { type BpfEntries, type BpfMap, type BpfMapShape, NativeError } from '@switchyard/native';

/** Current faults of the kernel; shared by all maps of a machine. */
export interface MapFaults {
  /** This share of all system calls that write fails. */
  failureRate: number;
  random: Random;
  /** Frontends with this address, 16 bytes, are refused. */
  refused: Uint8Array | undefined;
  /** Called after each element that was written or deleted by a system call. */
  afterWrite: (() => void) | undefined;
  /** System calls that wrote, tried or done. */
  calls: number;
}

/** A kernel without faults. */
export function noFaults(): MapFaults {
  return { failureRate: 0, random: () => 0, refused: undefined, afterWrite: undefined, calls: 0 };
}

/** A map whose writes fail as `faults` say. Stores to mapped arrays cannot fail. */
export class FaultyMap implements BpfMap {
  readonly #map: BpfMap;
  readonly #faults: MapFaults;

  constructor(map: BpfMap, faults: MapFaults) {
    this.#map = map;
    this.#faults = faults;
  }

  get shape(): BpfMapShape {
    return this.#map.shape;
  }

  get id(): number {
    return this.#map.id;
  }

  lookup(key: Uint8Array): Uint8Array | undefined {
    return this.#map.lookup(key);
  }

  update(key: Uint8Array, value: Uint8Array): void {
    this.#call('MAP_UPDATE_ELEM');
    this.#put(key, value);
  }

  delete(key: Uint8Array): boolean {
    this.#call('MAP_DELETE_ELEM');
    const wasThere = this.#map.delete(key);
    this.#faults.afterWrite?.();
    return wasThere;
  }

  /** One element after the other, as the kernel does it: programs may run between any two. */
  updateBatch(keys: Uint8Array, values: Uint8Array, count: number): void {
    this.#call('MAP_UPDATE_BATCH');
    const { keySize, valueSize } = this.shape;
    for (let index = 0; index < count; index++) {
      const key = keys.subarray(index * keySize, (index + 1) * keySize);
      this.#put(key, values.subarray(index * valueSize, (index + 1) * valueSize));
    }
  }

  entries(): BpfEntries {
    return this.#map.entries();
  }

  slices(): Generator<BpfEntries, void, undefined> {
    return this.#map.slices();
  }

  values(): Uint8Array {
    return this.#map.values();
  }

  [Symbol.dispose](): void {
    this.#map[Symbol.dispose]();
  }

  #put(key: Uint8Array, value: Uint8Array): void {
    const { refused, afterWrite } = this.#faults;
    if (
      this.shape.name === 'frontends' &&
      refused !== undefined &&
      Buffer.compare(key.subarray(0, 16), refused) === 0
    ) {
      throw failure('cannot write a frontend', constants.errno.EINVAL);
    }
    this.#map.update(key, value);
    afterWrite?.();
  }

  #call(name: string): void {
    const { failureRate, random } = this.#faults;
    this.#faults.calls++;
    if (failureRate > 0 && random() < failureRate)
      throw failure(`${name} of map ${this.shape.name}`, constants.errno.EIO);
  }
}

function failure(attempt: string, errno: number): NativeError {
  return new NativeError(attempt, { errno, syscall: 'bpf' });
}
