import { expect, test } from 'vitest';
import { ApiServerError } from '../../base/errors.ts';
import type { EventSubject } from '../../base/log.ts';
import type { JsonAnswer } from '../send-json.ts';
import { subjectUid } from './event-object.ts';

const cart: EventSubject = { kind: 'Service', namespace: 'shop', name: 'cart', uid: '' };
const unreachable = new ApiServerError('api.unreachable', 'no answer', { isRetryable: true });
const found = { items: [{ metadata: { uid: 'abc' } }] };

test.each<[string, EventSubject, { readonly status: number; readonly body: string } | Error, string]>([
  ['a Service that is there', cart, { status: 200, body: JSON.stringify(found) }, 'abc'],
  ['a removed Service', cart, { status: 200, body: '{"items":[]}' }, ''],
  ['a list that is none', cart, { status: 200, body: 'null' }, ''],
  ['an answer that broke off', cart, { status: 200, body: '{"ite' }, ''],
  ['a refusal', cart, { status: 403, body: '{}' }, ''],
  ['no answer', cart, unreachable, ''],
  ['a uid that is known', { ...cart, uid: 'xyz' }, unreachable, 'xyz'],
  ['a Node', { kind: 'Node', namespace: '', name: 'n1', uid: '' }, unreachable, ''],
])('%s', async (_, subject, reply, expected) => {
  const send = async (): Promise<JsonAnswer> => {
    if (reply instanceof Error) throw reply;
    return { ...reply, retryAfter: undefined };
  };
  expect(await subjectUid(subject, send, new AbortController().signal)).toBe(expected);
});
