import { type ClusterEvent, type ClusterStateSource, nodeName } from '@switchyard/core';
import { expect, test } from 'vitest';
import { readAhead } from './read-ahead.ts';

const never = new AbortController().signal;
const gone = (name: string): readonly ClusterEvent[] => [{ kind: 'delete', resource: 'Node', name: nodeName(name) }];

/** A source of two batches that notes when it is read. */
function twoBatches(seen: string[], failure?: Error): ClusterStateSource {
  return {
    async *batches() {
      seen.push('started');
      if (failure !== undefined) throw failure;
      yield gone('a');
      seen.push('first taken');
      yield gone('b');
    },
  };
}

test('the source is started before anybody asks, and nothing is lost', async () => {
  const seen: string[] = [];
  const source = readAhead(twoBatches(seen), never);
  expect(seen).toEqual(['started']);
  const batches: (readonly ClusterEvent[])[] = [];
  for await (const batch of source.batches(never)) batches.push(batch);
  expect(batches).toEqual([gone('a'), gone('b')]);
});

test('the failure of a source reaches the reader, not the process', async () => {
  const source = readAhead(twoBatches([], new Error('no such folder')), never);
  await Promise.resolve();
  await expect(source.batches(never)[Symbol.asyncIterator]().next()).rejects.toThrow('no such folder');
});

test('a reader that stops, ends the reading of the source', async () => {
  const source: ClusterStateSource = {
    async *batches(signal) {
      yield gone('a');
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
    },
  };
  const stop = new AbortController();
  const batches = readAhead(source, never).batches(stop.signal)[Symbol.asyncIterator]();
  expect(await batches.next()).toMatchObject({ value: gone('a') });
  const next = batches.next();
  stop.abort(new Error('enough'));
  await expect(next).rejects.toThrow('enough');
});
