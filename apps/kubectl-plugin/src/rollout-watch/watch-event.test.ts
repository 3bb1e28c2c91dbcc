import { expect, test } from 'vitest';
import { parseWatchEvent } from './watch-event.ts';

test.each([
  ['{"type":"ADDED","object":{"metadata":{"name":"a"}}}', { type: 'ADDED', object: { metadata: { name: 'a' } } }],
  ['{"type":"DELETED","object":{}}', { type: 'DELETED', object: {} }],
  ['{"type":"BOOKMARK","object":{}}', undefined],
])('%s', (line, event) => {
  expect(parseWatchEvent(line)).toEqual(event);
});

test('the end of a watch is an error with its reason', () => {
  const line = '{"type":"ERROR","object":{"kind":"Status","message":"too old resource version"}}';
  expect(() => parseWatchEvent(line)).toThrow('the API server ended the watch: too old resource version');
});
