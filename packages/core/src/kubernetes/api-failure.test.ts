import { expect, test } from 'vitest';
import { brokenOff } from './api-failure.ts';

const ssl = 'write EPROTO 40:error:0A00010B:SSL routines:x:wrong version number:../deps/openssl/x.c:77:\n';

test.each([
  ['a plain reason', new Error('connect ECONNREFUSED 192.0.2.1:6443'), 'connect ECONNREFUSED 192.0.2.1:6443'],
  ['several addresses: the first', new AggregateError([new Error('one'), new Error('two')]), 'one'],
  ['lines of a library', new Error('first\nsecond\n'), 'first'],
  ['https where http is spoken', new Error(ssl), `${ssl.trim()} (the server does not speak TLS)`],
])('the reason of a broken request is one line: %s', (_, cause, reason) => {
  expect(brokenOff('GET /x', 'no answer', cause).message).toBe(`GET /x: no answer: ${reason}; will be tried again`);
});
