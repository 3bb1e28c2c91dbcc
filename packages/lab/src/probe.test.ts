import { expect, test } from 'vitest';
import { failure } from './probe.ts';

test.each([
  ['ECONNREFUSED', { status: 'refused' }],
  ['ETIMEDOUT', { status: 'timeout' }],
  ['EPERM', { status: 'dropped' }],
  ['ECONNRESET', { status: 'reset' }],
  ['EHOSTUNREACH', { status: 'unreachable', code: 'EHOSTUNREACH' }],
])('a socket that fails with %s was %o', (code, expected) => {
  expect(failure(Object.assign(new Error('x'), { code }))).toEqual(expected);
});
