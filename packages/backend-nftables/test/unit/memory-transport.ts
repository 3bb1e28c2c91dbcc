import { HostError } from '@switchyard/core';
import { chainName } from '../../src/render/class-chains.ts';
import { type Change, type ElementId, splitElementId } from '../../src/render/elements.ts';
import type { FamilySuffix } from '../../src/render/names.ts';
import { NftError } from '../../src/kernel/nft-error.ts';
import { loadBalancingClasses } from '../../src/render/place-service.ts';
import { skeletonDigest } from '../../src/render/skeleton.ts';
import type { KernelObject, NftTransport, WriteRequest } from '../../src/kernel/transport.ts';

interface Table {
  readonly birthmark: number;
  readonly objects: Map<string, Map<string, string>>;
  readonly classes: Map<FamilySuffix, Map<number, string>>;
}

/** Fate of a transaction: taken, refused, taken with the answer lost, or all was flushed before. */
export type Fate = 'taken' | 'refused' | 'lost' | 'flushed';

/** A kernel in memory as netlink shows it, with classes made at run time. Several transports may look at one. */
export class MemoryKernel {
  readonly tables = new Map<string, Table>();
  /** When each family's heartbeat was written, by table and suffix. */
  readonly heartbeats = new Map<string, number>();
  /** The fates of the transactions to come; then all are taken. */
  fates: Fate[] = [];

  transport(): NftTransport {
    const absent = Promise.resolve(undefined);
    const at = ({ table, object, suffix }: KernelObject<string>): Map<string, string> | undefined =>
      this.tables.get(table) && this.#object(table, `${object}${suffix}`);
    return {
      canAddClasses: true,
      keeper: undefined,
      exclusively: (work) => work(),
      unwatched: () => ({ [Symbol.dispose]: () => undefined }),
      loadRules: async (_, { name }) => this.load(name),
      write: async (attempt, request) => this.#write(attempt, request),
      findTable: async (table) => birthmarkOf(this.tables.get(table)),
      readElements: async (object) => {
        const found = at(object);
        return found && [...found].map(([key, data]) => ({ id: `${object.object}${object.suffix} ${key}`, data }));
      },
      readSlots: async () => undefined,
      readIntervals: async (object) => [...(at(object)?.keys() ?? [])].sort(),
      readCounters: () => absent,
      writeHeartbeat: async ({ table, suffix, now }) => void this.heartbeats.set(`${table} ${suffix}`, now),
      readHeartbeat: async () => undefined,
      readClasses: async (table, suffix) => new Map(this.tables.get(table)?.classes.get(suffix)),
      listObjects: async () => [],
      flushObjects: async () => undefined,
      deleteTable: async (table) => void this.tables.delete(table),
      [Symbol.asyncDispose]: async () => undefined,
    };
  }

  /** Deletes an element as another process would. */
  lose(id: ElementId): void {
    const { object, key } = splitElementId(id);
    for (const table of this.tables.keys()) this.#object(table, object).delete(key);
  }

  get elements(): readonly ElementId[] {
    return [...this.tables.values()].flatMap(({ objects }) =>
      [...objects].flatMap(([object, elements]) => [...elements.keys()].map((key) => `${object} ${key}`)),
    );
  }

  /** Makes a table; another birthmark than ours is that of another build. */
  load(name: string, birthmark: number = skeletonDigest()): void {
    const classes = (suffix: FamilySuffix): Map<number, string> =>
      new Map(loadBalancingClasses.map(({ slots, handleClass }) => [handleClass, `lb${suffix}-${slots}`]));
    this.tables.set(name, {
      birthmark,
      objects: new Map(),
      classes: new Map((['4', '6'] as const).map((suffix) => [suffix, classes(suffix)])),
    });
  }

  #object(table: string, name: string): Map<string, string> {
    const { objects } = this.tables.get(table)!;
    const found = objects.get(name) ?? new Map<string, string>();
    objects.set(name, found);
    return found;
  }

  #write(attempt: string, { table, changes }: WriteRequest): void {
    const fate = this.fates.shift() ?? 'taken';
    if (fate === 'refused') throw new NftError(`${attempt}: refused`, { refusal: 'other' });
    if (fate === 'flushed') this.tables.clear();
    const before = this.tables.get(table);
    if (before === undefined) throw new NftError(`${attempt}: no such table`, { refusal: 'missing' });
    const copy: Table = {
      ...before,
      objects: new Map([...before.objects].map(([name, elements]) => [name, new Map(elements)])),
      classes: new Map([...before.classes].map(([suffix, classes]) => [suffix, new Map(classes)])),
    };
    this.tables.set(table, copy);
    try {
      for (const change of changes) this.#change(table, change);
    } catch (error) {
      this.tables.set(table, before);
      throw error;
    }
    if (fate === 'lost') throw new HostError('test.lost', `${attempt}: taken, but the answer got lost`);
  }

  #change(table: string, change: Change): void {
    const refuse = (refusal: 'exists' | 'missing'): never => {
      throw new NftError(`${refusal}: ${JSON.stringify(change)}`, { refusal, change });
    };
    if (change.kind === 'class') {
      const classes = this.tables.get(table)!.classes.get(change.suffix)!;
      const name = chainName(change.chain, change.suffix);
      if (classes.has(change.handleClass) || [...classes.values()].includes(name)) refuse('exists');
      classes.set(change.handleClass, name);
    } else if (change.kind === 'replace') {
      const found = this.#object(table, change.object);
      found.clear();
      for (const cidr of change.content) found.set(cidr, '');
    } else {
      const { object, key } = splitElementId(change.id);
      const found = this.#object(table, object);
      if (change.kind === 'delete') return found.delete(key) ? undefined : refuse('missing');
      if (found.has(key) && found.get(key) !== change.data) refuse('exists');
      if (object.startsWith('fw-allow') && [...found.keys()].some((other) => other !== key && overlap(other, key))) {
        refuse('exists');
      }
      found.set(key, change.data);
    }
  }
}

function birthmarkOf(table: Table | undefined): { readonly birthmarks: readonly number[] } | undefined {
  return table && { birthmarks: [table.birthmark] };
}

/** Ranges of one frontend, of which one lies in the other: `10.0.0.0/8`, `10.1.0.0/16` and the like. */
function overlap(one: string, other: string): boolean {
  const [a, b] = [one, other].map((key) => key.split(' . '));
  if (a!.slice(0, -1).join() !== b!.slice(0, -1).join()) return false;
  const [first, second] = [a, b].map((parts) => {
    const [address = '', length] = parts!.at(-1)!.split('/');
    return {
      bits: address
        .split('.')
        .map((octet) => Number(octet).toString(2).padStart(8, '0'))
        .join(''),
      length: Number(length),
    };
  });
  const length = Math.min(first!.length, second!.length);
  return first!.bits.slice(0, length) === second!.bits.slice(0, length);
}
