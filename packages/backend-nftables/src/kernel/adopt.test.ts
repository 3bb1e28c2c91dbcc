import { systemClock, UsageError } from '@switchyard/core';
import { beforeEach, describe, expect, test } from 'vitest';
import { type KernelToRead, readKernel } from './adopt.ts';
import { type Element, hex, packHandle } from '../render/elements.ts';
import type { NftTransport } from './transport.ts';

const { signal } = new AbortController();
const clock = { ...systemClock, sleep: () => Promise.resolve() };
const from = ({ transport }: Listing): KernelToRead => ({ transport, table: 'switchyard', family: 'IPv4', clock });
const element = (id: string): Element => ({ id, data: 'x' });

/** Reads of `endpoints4` give these lists in turn, the last of them for ever. Everything else is empty. */
class Listing {
  readonly #lists: readonly (readonly string[])[];
  reads = 0;

  constructor(...lists: readonly (readonly string[])[]) {
    this.#lists = lists;
  }

  readonly transport: NftTransport = new Proxy({} as NftTransport, {
    get: (_, name) => {
      if (name === 'readIntervals' || name === 'readCounters') return () => Promise.resolve(undefined);
      if (name === 'readElements') return ({ object }: { readonly object: string }) => this.#read(object);
      throw new UsageError('test.call', `reading the kernel needs no ${String(name)}`);
    },
  });

  #read(object: string): Promise<readonly Element[]> {
    if (object !== 'endpoints') return Promise.resolve([]);
    const list = this.#lists[Math.min(this.reads++, this.#lists.length - 1)] ?? [];
    return Promise.resolve(list.map((slot) => element(`endpoints4 0x2 . ${slot}`)));
  }
}

describe('readKernel', () => {
  test.each<[string, Listing, number]>([
    ['a list without doubles is complete', new Listing(['0', '1', '2']), 1],
    ['slots come in any order', new Listing(['2', '0', '1']), 1],
    ['a list with a double is read again', new Listing(['0', '2', '2'], ['0', '1', '2']), 2],
    ['as often as needed', new Listing(['0', '0', '0'], ['1', '1', '0'], ['0', '1', '2']), 3],
  ])('%s', async (_, listing, reads) => {
    const kernel = await readKernel(from(listing), signal);
    expect([...kernel.slots]).toEqual([[2, ['x', 'x', 'x']]]);
    expect(listing.reads).toBe(reads);
  });

  describe('more than 65,536 slots that sets lead to', () => {
    // Two sets of 32,768 slots and one of 8.
    const handles = [0x7f3, 0x7f3, 8].map((handleClass, index) => packHandle(handleClass, index + 1));
    const sets = handles.map((handle, index) => ({ id: `to-cluster4 0x${index + 1}`, data: hex(handle) }));
    const asked: unknown[] = [];
    const transport = (slots: readonly Element[] | undefined): NftTransport =>
      ({
        readElements: async ({ object }) => {
          asked.push(object);
          if (object === 'endpoints') return [{ id: 'endpoints4 0x1 . 0', data: 'listed' }];
          return object === 'to-cluster' ? sets : [];
        },
        readSlots: async (_, counts) => {
          asked.push([...counts]);
          return slots;
        },
        readIntervals: async () => [],
        readCounters: async () => undefined,
      }) satisfies Partial<NftTransport> as Partial<NftTransport> as NftTransport;
    const read = (slots: readonly Element[] | undefined) =>
      readKernel({ transport: transport(slots), table: 'switchyard', family: 'IPv4', clock }, signal);

    beforeEach(() => {
      asked.length = 0;
    });

    test('are read by their keys', async () => {
      const kernel = await read([{ id: 'endpoints4 0x1 . 0', data: 'asked' }]);
      expect([...kernel.slots]).toEqual([[1, ['asked']]]);
      const counts = [
        [1, 32_768],
        [2, 32_768],
        [3, 8],
      ];
      expect(asked.at(-1)).toEqual(counts);
      expect(asked).not.toContain('endpoints');
    });

    test('are listed if the kernel has others', async () => {
      expect([...(await read(undefined)).slots]).toEqual([[1, ['listed']]]);
      expect(asked.at(-1)).toBe('endpoints');
    });
  });

  test('gives up on a list that never settles', async () => {
    const listing = new Listing(['0', '0']);
    await expect(readKernel(from(listing), signal)).rejects.toThrow(
      'cannot read inet switchyard endpoints4: 20 lists had doubles',
    );
  });
});
