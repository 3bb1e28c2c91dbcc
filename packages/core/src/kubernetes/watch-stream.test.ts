import { expect, test } from 'vitest';
import { parseWatchLine, splitLines } from './api-client.ts';

async function* chunks(...texts: readonly string[]): AsyncGenerator<Buffer> {
  for (const text of texts) yield Buffer.from(text, 'latin1');
}

async function split(...texts: readonly string[]): Promise<readonly (readonly string[])[]> {
  const found: string[][] = [];
  for await (const lines of splitLines(chunks(...texts), 'GET /x')) found.push(lines.map((line) => line.toString()));
  return found;
}

test.each<[string, readonly string[], readonly (readonly string[])[]]>([
  ['one line in one chunk', ['a\n'], [['a']]],
  ['several lines in one chunk come together', ['a\nb\nc\n'], [['a', 'b', 'c']]],
  ['a line over three chunks', ['a', 'b', 'c\n'], [['abc']]],
  ['the end of one line and the start of the next', ['a\nb', 'c\nd', '\n'], [['a'], ['bc'], ['d']]],
  ['empty lines are no lines', ['\n\na\n\n', '\n'], [['a']]],
  ['a character over two chunks', ['\xc3', '\xa9\n'], [['é']]],
  ['nothing', [], []],
])('%s', async (_, texts, expected) => {
  expect(await split(...texts)).toEqual(expected);
});

test('a last line without a newline is a fault, not a line', async () => {
  await expect(split('a\n', '{"type":"DELETED"}')).rejects.toThrow('GET /x: the last line is not complete');
});

test('a line without end is given up before it fills the memory', async () => {
  const mebibyte = 'x'.repeat(1024 * 1024);
  await expect(split(...Array<string>(40).fill(mebibyte))).rejects.toThrow('a line is longer than 33554432 bytes');
});

test.each([
  ['ADDED', { metadata: { name: 'a' } }, { kind: 'changed', object: { metadata: { name: 'a' } } }],
  ['MODIFIED', {}, { kind: 'changed', object: {} }],
  ['DELETED', {}, { kind: 'deleted', object: {} }],
  [
    'BOOKMARK',
    { metadata: { resourceVersion: '7' } },
    { kind: 'bookmark', resourceVersion: '7', isInitialEventsEnd: false },
  ],
  [
    'BOOKMARK',
    { metadata: { resourceVersion: '7', annotations: { 'k8s.io/initial-events-end': 'true' } } },
    { kind: 'bookmark', resourceVersion: '7', isInitialEventsEnd: true },
  ],
  [
    'ERROR',
    { code: 410, message: 'too old' },
    { kind: 'error', error: { status: 410, message: 'GET /x: answered 410: too old; will be tried again' } },
  ],
  ['ERROR', {}, { kind: 'error', error: { status: 500 } }],
])('%s with %j', (type, object, expected) => {
  expect(parseWatchLine(Buffer.from(JSON.stringify({ type, object })), 'GET /x')).toMatchObject(expected);
});

test.each([
  ['{"type":"ADDED"', 'is not JSON'],
  ['[]', 'has no object'],
  ['null', 'has no object'],
  ['{"type":"ADDED","object":null}', 'has no object'],
  ['{"type":"ADDED","object":"x"}', 'has no object'],
  ['{"type":"MOVED","object":{}}', 'has the unknown type "MOVED"'],
])('%s %s', (line, message) => {
  expect(() => parseWatchLine(Buffer.from(line), 'GET /x')).toThrow(message);
});
