import { expect, test } from 'vitest';
import { createKubectl } from './kubectl.ts';
import { linesOf } from './lines.ts';

async function* piecesOf(...pieces: readonly string[]): AsyncGenerator<string> {
  yield* pieces;
}

async function collect(lines: AsyncIterable<string>): Promise<readonly string[]> {
  const all: string[] = [];
  for await (const line of lines) all.push(line);
  return all;
}

test('joins pieces, and leaves out empty and unfinished lines', async () => {
  const lines = await collect(linesOf(piecesOf('a\nb', 'c\n', '\n\nd\ne')));
  expect(lines).toEqual(['a', 'bc', 'd']);
});

const shell = createKubectl('/bin/sh', ['-c']);

test('yields the lines of a command', async () => {
  const { signal } = new AbortController();
  expect(await collect(shell.lines(['echo one; echo two'], signal))).toEqual(['one', 'two']);
});

test("a command that fails throws with the command's words, after its lines", async () => {
  const seen: string[] = [];
  const reading = (async () => {
    for await (const line of shell.lines(['echo one; echo forbidden >&2; exit 1'], new AbortController().signal))
      seen.push(line);
  })();
  await expect(reading).rejects.toThrow(/exit 1: forbidden$/);
  expect(seen).toEqual(['one']);
});

test('a program that does not exist is an error', async () => {
  const lines = createKubectl('/nowhere/kubectl', []).lines([], new AbortController().signal);
  await expect(lines.next()).rejects.toThrow('cannot run /nowhere/kubectl');
});

test('the signal ends it without an error', async () => {
  const stop = new AbortController();
  const seen: string[] = [];
  for await (const line of shell.lines(['echo one; exec sleep 60'], stop.signal)) {
    seen.push(line);
    stop.abort();
  }
  expect(seen).toEqual(['one']);
});
