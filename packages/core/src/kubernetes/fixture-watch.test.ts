import { afterEach, beforeEach, expect, test } from 'vitest';
import { createServer, type Server } from 'node:net';
import { readFileSync } from 'node:fs';
import type { TLSSocket } from 'node:tls';
import { initialEventsEnd, ScriptedApiServer, serveWatchList } from '../testing/scripted-api-server.ts';
import { millis, systemClock } from '../base/time.ts';
import { type ApiBody, newApiClient } from './api-client.ts';
import { defaultTls, fixedCredentials } from './api-server-connection.ts';
import { parseWatchLine, splitLines } from './api-client.ts';
import { linesOf, recorded, recording, replay, type Recorded, type RecordedLine } from './testing/recorded.ts';
import { gone, ReflectorHarness } from './testing/reflector-harness.ts';

// Duties of a client by each statement of the recording's README: watches.

let h: ReflectorHarness;

beforeEach(async () => {
  h = await ReflectorHarness.create();
});

afterEach(() => h[Symbol.asyncDispose]());

/** Brings the reflector in sync at a version, then lets it request the watch that follows. */
async function resumeFrom(version: string): Promise<void> {
  h.start({ shortWatch: millis(0) });
  (await h.sync(version)).end();
}

const nameOf = ({ object }: RecordedLine): string => object.metadata.name ?? '';
const lastVersion = (record: Recorded): string => linesOf(record).at(-1)?.object.metadata.resourceVersion ?? '';

async function nextVersion(): Promise<string | null> {
  return (await h.next()).query.get('resourceVersion');
}

test('fixture fact 7: the recorded bytes of a chunked watch are split on newlines, for any chunks', async () => {
  const { watch } = recording<{ watch: { responseBytes: string } }>('raw-bytes.json');
  const server: Server = createServer((socket) => {
    socket.once('data', () => {
      // Half of each chunk now and half later: chunk borders and packet borders mean nothing.
      const bytes = Buffer.from(watch.responseBytes);
      const step = (from: number): void => {
        socket.write(bytes.subarray(from, from + 701));
        if (from + 701 < bytes.length) setImmediate(step, from + 701);
        else socket.end();
      };
      step(0);
    });
  });
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port));
  });
  const connection = {
    url: new URL(`http://127.0.0.1:${port}`),
    tls: defaultTls,
    credentials: fixedCredentials(undefined),
  };
  await using client = newApiClient(connection, { clock: systemClock, userAgent: 'test' });
  const kinds: string[] = [];
  await client.get(
    { path: '/x', query: new URLSearchParams() },
    async (body) => {
      for await (const lines of splitLines(body.chunks(), body.request)) {
        for (const line of lines) kinds.push(parseWatchLine(line, body.request).kind);
      }
    },
    new AbortController().signal,
  );
  expect(kinds).toEqual(['changed', 'changed']);
  server.close();
});

test('fixture fact 8: every watch names the version from which it continues, or requests initial events with an end', async () => {
  await resumeFrom('810');
  replay(await h.next(), recorded('watch-semantics.json', 'exactness')).end();
  await h.next();
  const [first, ...later] = h.server.requests.map(({ query }) => query);
  expect(first?.get('sendInitialEvents')).toBe('true');
  expect(later.map((query) => query.get('resourceVersion'))).toEqual(['810', '811']);
});

test('fixture facts 9 and 10: an object that leaves the selector is deleted by name, one that enters is added; the version of the deletion counts', async () => {
  const record = recorded('watch-services.json', 'of a namespace (label selector + field selector of kube-proxy)');
  await resumeFrom('360');
  const watch = replay(await h.next(), record);
  await h.until(() => h.events.length === 1 + linesOf(record).length);
  const expected = linesOf(record).map(
    (line) => `${line.type === 'DELETED' ? 'delete' : 'upsert'} default/${nameOf(line)}`,
  );
  expect(h.told.slice(1)).toEqual(expected);
  expect(expected).toContain('delete default/w');
  const deletions = linesOf(record).filter(({ type }) => type === 'DELETED');
  expect(deletions.length).toBeGreaterThanOrEqual(2);
  watch.end();
  expect(await nextVersion()).toBe(lastVersion(record));
});

test('fixture fact 11: each event is one change; none is delivered twice', async () => {
  const record = recorded('watch-services.json', 'status.loadBalancer set');
  await resumeFrom('788');
  replay(await h.next(), record);
  await h.until(() => h.events.length === 1 + linesOf(record).length);
  const texts = h.events.slice(1).map((event) => JSON.stringify(event));
  expect(texts.filter((text, index) => text === texts[index - 1])).toHaveLength(0);
});

test('fixture fact 12: a finalizer makes MODIFIED first; only DELETED deletes', async () => {
  await resumeFrom('378');
  replay(await h.next(), recorded('watch-services.json', 'finalizer'));
  await h.until(() => h.events.length === 4);
  expect(h.told.slice(1).map((text) => text.split(' ')[0])).toEqual(['upsert', 'upsert', 'delete']);
});

test('fixture fact 13: bookmarks move the version and are never stored', async () => {
  await using own = await ReflectorHarness.create('ServiceCIDR');
  own.start({ shortWatch: millis(0) });
  (await own.sync('360')).end();
  const record = recorded('watch-semantics.json', 'quiet for 75 s');
  replay(await own.next(), record).end();
  expect((await own.next()).query.get('resourceVersion')).toBe(lastVersion(record));
  expect(own.told).toEqual(['replace']);
});

test('fixture fact 13: a watch that ends with nothing newer and no bookmark is resumed from the same version', async () => {
  await resumeFrom('805');
  replay(await h.next(), recorded('watch-semantics.json', 'timeoutSeconds=6'));
  expect(await nextVersion()).toBe('805');
  expect(h.log.transitions).toEqual([]);
});

test('fixture fact 13: a bookmark shortly before the end is what the next watch starts from', async () => {
  const record = recorded('errors-and-gone.json', 'allowWatchBookmarks with timeoutSeconds=9');
  await resumeFrom('856');
  replay(await h.next(), record);
  expect(await nextVersion()).toBe(lastVersion(record));
});

test('fixture fact 14: WatchList gives all objects, then its end, then changes', async () => {
  const record = recorded('watch-semantics.json', 'no resourceVersion, then a live change');
  const end = linesOf(record).findIndex(({ type }) => type === 'BOOKMARK');
  const initial = linesOf(record).slice(0, end);
  h.start();
  const request = await h.next();
  expect([...request.query]).toEqual(
    expect.arrayContaining([
      ['watch', 'true'],
      ['allowWatchBookmarks', 'true'],
      ['sendInitialEvents', 'true'],
      ['resourceVersionMatch', 'NotOlderThan'],
    ]),
  );
  expect(request.query.has('resourceVersion')).toBe(false);
  replay(request, record);
  await h.until(() => h.events.length >= 1);
  expect(h.told[0]).toBe(['replace', ...initial.map((line) => `default/${nameOf(line)}`)].join(' '));
});

test('fixture fact 14: a live change after the initial events is an upsert', async () => {
  h.start();
  replay(await h.next(), recorded('watch-semantics.json', 'live change after the initial events'));
  await h.until(() => h.events.length === 2);
  expect(h.told).toEqual(['replace default/web', 'upsert default/web']);
});

test('fixture fact 14: of an empty set only the bookmark comes', async () => {
  h.start();
  replay(await h.next(), recorded('watch-semantics.json', 'WatchList of an empty set'));
  await h.until(() => h.events.length === 1);
  expect(h.told).toEqual(['replace']);
});

test.each(['sendInitialEvents without resourceVersionMatch', 'resourceVersionMatch on a watch'])(
  'fixture fact 14: a server that answers 422 (%s) is listed',
  async (name) => {
    h.start();
    replay(await h.next(), recorded('watch-semantics.json', name));
    expect((await h.next()).query.has('watch')).toBe(false);
    expect(h.log.transitions).toEqual([]);
  },
);

test('fixture fact 14: without the end bookmark nothing is delivered', async () => {
  h.start();
  replay(await h.next(), recorded('watch-semantics.json', 'without allowWatchBookmarks'));
  await h.pause();
  expect(h.events).toEqual([]);
});

test('fixture fact 15: a clean end is resumed from the last version seen', async () => {
  await resumeFrom('804');
  replay(await h.next(), recorded('watch-semantics.json', 'timeoutSeconds=3'));
  expect(await nextVersion()).toBe('804');
  expect(h.told).toEqual(['replace']);
});

test.each([
  ['HTTP 200 with an ERROR event', 'watch from a revision older than the watch cache'],
  ['HTTP 410', 'list resourceVersion=2 Exact'],
])('fixture fact 16: %s for an old version leads to a new list', async (_, name) => {
  await resumeFrom('120');
  replay(await h.next(), recorded('errors-and-gone.json', name));
  const relist = await h.next();
  expect(relist.query.get('sendInitialEvents')).toBe('true');
  expect(h.told).toEqual(['replace']);
});

test('fixture fact 16: HTTP 500 for a malformed version is backed off, and given up after five times', async () => {
  await resumeFrom('abc');
  for (let round = 0; round < 5; round++) {
    const request = await h.next();
    expect(request.query.get('resourceVersion')).toBe('abc');
    replay(request, recorded('watch-semantics.json', 'bad resourceVersion'));
  }
  expect((await h.next()).query.get('sendInitialEvents')).toBe('true');
});

test('fixture facts 17 and 18: requests are for JSON: no Table, no metadata only; what lists may be compressed', async () => {
  h.start();
  const list = await h.next();
  const plain = 'application/json';
  expect(list.headers.accept).toBe(`${plain};drop=metadata.managedFields,${plain}`);
  expect(list.headers['accept-encoding']).toBe('gzip');
  serveWatchList(list, '5', []).end();
  const watch = await h.next();
  expect(watch.query.get('resourceVersion')).toBe('5');
  expect(watch.headers['accept-encoding']).toBeUndefined(); // a change must not wait for a compressor
});

test('fixture fact 19: TLS 1.3 and HTTP/1.1; HTTP/2 is not offered, connections are kept', async () => {
  const tls = { cert: '', key: '', ca: '' };
  for (const [field, name] of [
    ['cert', 'server.crt'],
    ['key', 'server.key'],
    ['ca', 'ca.crt'],
  ] as const) {
    tls[field] = readFileSync(new URL(`../../test/fixtures/tls/${name}`, import.meta.url), 'utf8');
  }
  await using server = await ScriptedApiServer.listen({ tls: { ...tls, ALPNProtocols: ['h2', 'http/1.1'] } });
  await using client = newApiClient(
    { url: server.url, tls: { ...defaultTls, ca: tls.ca }, credentials: fixedCredentials(undefined) },
    { clock: systemClock, userAgent: 'test' },
  );
  const ports = new Set<number>();
  for (let round = 0; round < 3; round++) {
    const drain = async (body: ApiBody): Promise<void> => {
      for await (const chunk of body.chunks()) expect(chunk.toString()).toBe('ok');
    };
    const answer = client.get({ path: '/x', query: new URLSearchParams() }, drain, new AbortController().signal);
    const request = await server.next('/x');
    const socket = request.socket as TLSSocket;
    expect([socket.getProtocol(), socket.alpnProtocol]).toEqual(['TLSv1.3', false]);
    ports.add(request.clientPort);
    request.answer(200, 'ok');
    await answer;
  }
  expect(ports.size).toBe(1);
});

test.each([
  ['401', 'errors-and-gone.json', 'bad token on a watch', 'answered 401: Unauthorized; check the credentials'],
  ['403', 'errors-and-gone.json', '403 (watch', 'answered 403: services is forbidden: User'],
  [
    '429 in plain text',
    'overload.json',
    '429 with Retry-After',
    'answered 429: Too many requests, please try again later.;',
  ],
  ['503 in plain text', 'errors-and-gone.json', '503 (text/plain)', 'answered 503: service unavailable'],
])('fixture fact 20: %s before a stream is understood and waited out', async (_, file, name, message) => {
  await resumeFrom('10');
  replay(await h.next(), recorded(file, name));
  expect(await nextVersion()).toBe('10');
  expect(h.log.lines.find(({ level }) => level === 'warn')?.fields['error']).toContain(message);
  expect(h.told).toEqual(['replace']);
});

test('fixture fact 20: 429 says when to come back', async () => {
  await resumeFrom('10');
  replay(await h.next(), recorded('overload.json', '429 with Retry-After'));
  await h.next();
  expect(h.clock.waits.at(-1)).toBe(1500);
});

test('fixture fact 38: order is kept within a stream', async () => {
  await resumeFrom('360');
  const record = recorded('watch-services.json', 'of a namespace (label selector + field selector of kube-proxy)');
  replay(await h.next(), record);
  await h.until(() => h.events.length === 1 + linesOf(record).length);
  const names = h.told.slice(1).map((text) => text.split('/')[1]);
  expect(names).toEqual(linesOf(record).map(nameOf));
});

test('fixture fact 39: a watch of a killed API server ends without its terminator and is resumed', async () => {
  await resumeFrom('1784');
  replay(await h.next(), recorded('overload.json', 'SIGKILL'));
  expect(await nextVersion()).toBe('1784');
  expect(h.log.transitions).toEqual([]);
  expect(h.told).toEqual(['replace']);
});

test('fixture fact 39: a refused connection and a server that is still starting are waited out', async () => {
  h.start({ shortWatch: millis(0) });
  const watch = await h.sync('10', 'a');
  const { port } = h.server;
  watch.end();
  await h.server[Symbol.asyncDispose]();
  await h.until(() => h.log.transitions.length === 1);
  expect(h.log.lines.find(({ level }) => level === 'warn')?.fields['error']).toContain('ECONNREFUSED');
  await using starting = await ScriptedApiServer.listen({ port });
  replay(await starting.next('/api/v1/services'), recorded('overload.json', 'still starting'));
  (await starting.next('/api/v1/services')).stream().send(gone).end();
  (await starting.next('/api/v1/services')).stream().send(initialEventsEnd('20'));
  await h.until(() => h.events.length === 2);
  await h.stop();
});
