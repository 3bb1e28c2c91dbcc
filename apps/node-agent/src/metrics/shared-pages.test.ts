import { HostError } from '@switchyard/core';
import { expect, test } from 'vitest';
import type { MetricsText } from './metrics-page.ts';
import { SharedPages, type SharedText } from './shared-pages.ts';

const { signal } = new AbortController();
const openMetrics = 'application/openmetrics-text';

/** Pages that are made when a test says so; each is `PAGE n` in two pieces. */
function bench() {
  const begun: { readonly signal: AbortSignal; readonly finish: (error?: Error) => void }[] = [];
  const source = {
    metricsText: async (accept: string | undefined, stop: AbortSignal): Promise<MetricsText> => {
      const number = begun.length + 1;
      const ready = Promise.withResolvers<void>();
      begun.push({ signal: stop, finish: (error) => (error === undefined ? ready.resolve() : ready.reject(error)) });
      await ready.promise;
      return { contentType: accept ?? 'text', pieces: piecesOf(number) };
    },
  };
  return { pages: new SharedPages(source), begun };
}

async function* piecesOf(number: number): AsyncGenerator<string> {
  yield 'PAGE ';
  yield String(number);
}

/** Everything that can go on without a page in the making has gone on. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function bodyOf({ pieces }: SharedText): Promise<string> {
  let body = '';
  for await (const piece of pieces) body += Buffer.from(piece).toString();
  return body;
}

test('requests of one moment share a page', async () => {
  const { pages, begun } = bench();
  const asked = Array.from({ length: 300 }, async () => bodyOf(await pages.metricsText(undefined, signal)));
  await settled();
  expect(begun).toHaveLength(1);
  begun[0]?.finish();
  expect(new Set(await Promise.all(asked))).toEqual(new Set(['PAGE 1']));
});

test('a request gets a page that was begun after it; one at a time is in the making', async () => {
  const { pages, begun } = bench();
  const first = pages.metricsText(undefined, signal);
  await settled();
  const later = [undefined, undefined, openMetrics].map((accept) => pages.metricsText(accept, signal));
  await settled();
  expect(begun).toHaveLength(1);
  begun[0]?.finish();
  expect(await bodyOf(await first)).toBe('PAGE 1');
  await settled();
  expect(begun).toHaveLength(2);
  begun[1]?.finish();
  await settled();
  begun[2]?.finish();
  const texts = await Promise.all(later);
  expect(texts.map(({ contentType }) => contentType)).toEqual(['text', 'text', openMetrics]);
  expect(await Promise.all(texts.map(bodyOf))).toEqual(['PAGE 2', 'PAGE 2', 'PAGE 3']);
  expect(begun).toHaveLength(3);
});

test('a page is given up when all who wait for it have gone, and not begun for them', async () => {
  const { pages, begun } = bench();
  const clients = [new AbortController(), new AbortController(), new AbortController()] as const;
  const asked = clients.slice(0, 2).map((client) => pages.metricsText(undefined, client.signal));
  await settled();
  const last = pages.metricsText(undefined, clients[2].signal);
  clients[0].abort();
  expect(begun[0]?.signal.aborted).toBe(false);
  clients[1].abort();
  expect(begun[0]?.signal.aborted).toBe(true);
  clients[2].abort();
  begun[0]?.finish(new HostError('x', 'stopped'));
  const results = await Promise.allSettled([...asked, last]);
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  expect(begun).toHaveLength(1);
});

test('a page that fails makes only its own requests fail', async () => {
  const { pages, begun } = bench();
  const asked = [pages.metricsText(undefined, signal), pages.metricsText(undefined, signal)];
  await settled();
  begun[0]?.finish(new HostError('x', 'no'));
  for (const one of asked) await expect(one).rejects.toThrow('no');
  const next = pages.metricsText(undefined, signal);
  await settled();
  begun[1]?.finish();
  expect(await bodyOf(await next)).toBe('PAGE 2');
});

test('slow readers keep four pages in memory; those of the oldest one are cut', async () => {
  const { pages, begun } = bench();
  const readers: AsyncIterator<Uint8Array>[] = [];
  for (let count = 0; count < 5; count++) {
    const asked = pages.metricsText(undefined, signal);
    await settled();
    begun[count]?.finish();
    const reader = (await asked).pieces[Symbol.asyncIterator]();
    expect((await reader.next()).done).toBe(false);
    readers.push(reader);
  }
  await expect(readers[0]?.next()).rejects.toThrow('newer pages');
  for (const reader of readers.slice(1)) expect((await reader.next()).done).toBe(false);
});
