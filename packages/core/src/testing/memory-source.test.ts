import { expect, test } from 'vitest';
import type { ClusterEvent } from '../model/state/cluster-event.ts';
import { service } from './builders.ts';
import { MemorySource } from './memory-source.ts';

const batch = (name: string): readonly ClusterEvent[] => [
  { kind: 'upsert', resource: 'Service', item: service(`ns/${name}`) },
];

test('delivers each batch once, in order, waits for more, and ends when aborted', async () => {
  const source = new MemorySource(batch('a'), batch('b'));
  const controller = new AbortController();
  const reader = source.batches(controller.signal);
  expect((await reader.next()).value).toEqual(batch('a'));
  expect((await reader.next()).value).toEqual(batch('b'));
  const third = reader.next();
  source.push(batch('c'));
  expect((await third).value).toEqual(batch('c'));
  const end = reader.next();
  controller.abort();
  expect((await end).done).toBe(true);
});

test('events pushed without a reader are not lost', async () => {
  const source = new MemorySource();
  source.push(batch('a'));
  const controller = new AbortController();
  for await (const next of source.batches(controller.signal)) {
    expect(next).toEqual(batch('a'));
    controller.abort();
  }
});

test('fails as told, after what it still has', async () => {
  const source = new MemorySource(batch('a'));
  source.fail(new Error('kubeconfig is wrong'));
  const reader = source.batches(new AbortController().signal);
  expect((await reader.next()).value).toEqual(batch('a'));
  await expect(reader.next()).rejects.toThrow('kubeconfig is wrong');
});

test('has one reader at a time', async () => {
  const source = new MemorySource(batch('a'));
  const { signal } = new AbortController();
  const first = source.batches(signal);
  await first.next();
  await expect(source.batches(signal).next()).rejects.toThrow('one reader');
  await first.return();
  source.push(batch('b'));
  expect((await source.batches(signal).next()).value).toEqual(batch('b'));
});
