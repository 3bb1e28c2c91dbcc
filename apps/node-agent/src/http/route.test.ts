import { noopLogger } from '@switchyard/core';
import { textAnswer } from '@switchyard/core/health';
import { MemoryLogger } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import { oneAtATime, type Route, router } from './route.ts';
import { ask } from './testing/debug-bench.ts';

const routes: readonly Route[] = [
  { path: '/read', methods: ['GET'], answer: () => textAnswer(200, 'read') },
  { path: '/write', methods: ['PUT', 'GET'], answer: ({ body }) => textAnswer(200, body) },
  { path: '/any', methods: 'any', answer: ({ method }) => textAnswer(200, method) },
  { path: '/below/', methods: ['GET'], answer: () => textAnswer(200, 'below') },
];

describe('router', () => {
  test.each([
    ['GET', '/read', 200, undefined],
    ['GET', '/read?a=b', 200, undefined],
    ['HEAD', '/read', 200, undefined],
    ['POST', '/read', 405, 'GET, HEAD'],
    ['get', '/read', 405, 'GET, HEAD'],
    ['PUT', '/write', 200, undefined],
    ['DELETE', '/write', 405, 'PUT, GET, HEAD'],
    ['OPTIONS', '/any', 200, undefined],
    ['GET', '/read/', 404, undefined],
    ['GET', '/below', 404, undefined],
    ['GET', '/below/', 200, undefined],
    ['GET', '/below/more', 404, undefined],
    ['POST', '/', 404, undefined],
    ['GET', '//read', 404, undefined],
    ['GET', '/%72ead', 404, undefined],
    ['GET', '/__proto__', 404, undefined],
  ])('%s %s is answered with %i', async (...row) => {
    const [method, path, status, allow] = row;
    const answer = await ask(router(routes, noopLogger), path, { method });
    expect([answer.status, answer.headers['Allow']]).toEqual([status, allow]);
  });

  test.each<readonly [string, Route['answer']]>([
    [
      'throws',
      () => {
        throw new Error('no luck');
      },
    ],
    ['rejects', () => Promise.reject(new Error('no luck'))],
  ])('an endpoint that %s is a 500 and an error in the log, no more', async (_, answer) => {
    const logger = new MemoryLogger();
    const handler = router([{ path: '/x', methods: 'any', answer }], logger);
    expect(await ask(handler, '/x')).toMatchObject({ status: 500, body: '500 no luck\n' });
    expect(logger.transitions).toEqual(['error endpoint failed']);
  });

  test('a stream that fails is an error in the log, and stays a failure', async () => {
    const logger = new MemoryLogger();
    async function* pieces(): AsyncGenerator<string> {
      yield 'some';
      throw new Error('no luck');
    }
    const answer = () => ({ status: 200, headers: {}, pieces: pieces() });
    const handler = router([{ path: '/x', methods: 'any', answer }], logger);
    await expect(ask(handler, '/x')).rejects.toThrow('no luck');
    expect(logger.transitions).toEqual(['error endpoint failed']);
  });
});

test('what may be done one at a time refuses a second request, and takes the next one', async () => {
  const release = Promise.withResolvers<void>();
  const handler = oneAtATime(async () => {
    await release.promise;
    return textAnswer(200, 'done');
  });
  const first = ask(handler, '/dear');
  expect(await ask(handler, '/dear')).toMatchObject({ status: 429 });
  release.resolve();
  expect(await first).toMatchObject({ status: 200 });
  expect(await ask(handler, '/dear')).toMatchObject({ status: 200 });
});
