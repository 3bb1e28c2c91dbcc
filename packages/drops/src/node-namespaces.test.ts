import { millis, parseCidr } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import type { ProcessNamespace } from './kernel/namespaces.ts';
import { nodeNetns, placedDrop, podNetns } from './testing/placed-drop.ts';
import { counted, FakeCounter, readerOf } from './testing/reader.ts';
import { serviceView } from './testing/shop.ts';

const { signal } = new AbortController();

describe('listed namespaces', () => {
  const listed = (...inodes: readonly number[]): readonly ProcessNamespace[] =>
    [nodeNetns, ...inodes].map((inode) => ({
      inode,
      cookie: inode,
      isLinked: true,
      folder: `/proc/${inode}`,
      addresses: new Set(),
    }));
  const view = serviceView({ podCidrs: [parseCidr('10.244.1.0/24')] });
  /** Of a namespace that is not the node's, to a pod with an address of this node. */
  const toPod = placedDrop({ netns: podNetns, reason: 'IP_RPFILTER', to: '10.244.1.5:8080' });

  /** Losses of readings of one drop each, with what was listed by then, at these times. */
  async function lossesOf(...readings: readonly (readonly [at: number, list: readonly ProcessNamespace[]])[]) {
    let [time, list] = readings[0] ?? [0, []];
    let lists = 0;
    const reader = readerOf({
      counter: new FakeCounter(...readings.map(() => counted(toPod))),
      namespaces: () => {
        lists++;
        return list;
      },
      monotonic: () => millis(time),
    });
    const found: number[] = [];
    for (const [at, next] of readings) {
      [time, list] = [at, next];
      found.push((await reader.read(view, signal)).losses.length);
    }
    return { found, lists };
  }

  test('separate drops of another cluster on this machine that has the same addresses', async () => {
    expect(await lossesOf([0, listed(7)], [500, listed(7)])).toEqual({ found: [0, 0], lists: 2 });
    expect(await lossesOf([0, listed(podNetns)])).toEqual({ found: [1], lists: 1 });
  });

  test('have a new pod at its first drop, and an ended one still', async () => {
    const [without, withPod] = [listed(7), listed(7, podNetns)];
    expect(await lossesOf([0, withPod], [6000, without])).toEqual({ found: [1, 1], lists: 2 });
    expect(await lossesOf([0, without], [500, withPod], [6000, withPod])).toEqual({ found: [0, 0, 1], lists: 3 });
    expect(await lossesOf([0, listed()], [6000, withPod])).toEqual({ found: [1, 1], lists: 2 });
  });

  test('do not decide for a node without pods, where they may be of another node', async () => {
    const foreign = listed(podNetns).map((one) => ({ ...one, isLinked: one.inode === nodeNetns }));
    const fromForeignNode = placedDrop({ netns: podNetns, to: '10.96.0.12:80', place: { at: 'forward', by: 'rule' } });
    const reader = readerOf({
      counter: new FakeCounter(counted(fromForeignNode), counted(fromForeignNode)),
      namespaces: () => foreign,
    });
    expect((await reader.read(view, signal)).losses).toEqual([]);
    expect((await reader.read(view, signal)).losses).toEqual([]);
  });

  test('decide nothing where processes of pods are not visible', async () => {
    expect((await lossesOf([0, listed()])).found).toEqual([1]);
    const unknown = listed(7).map((one) => ({ ...one, cookie: undefined }));
    expect((await lossesOf([0, unknown])).found).toEqual([1]);
  });
});
