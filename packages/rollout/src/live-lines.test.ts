import { millis } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { LiveLines } from './live-lines.ts';
import type { RequestRecord } from './run-record.ts';

const start = 1000;

/** Four requests per second, one symbol each. */
function linesOf(symbols: string): readonly string[] {
  const live = new LiveLines({ startedAt: millis(start), period: millis(1000), oldPod: 'old' });
  const request = (symbol: string, sequence: number): RequestRecord => ({
    sequence,
    scheduledAt: millis(start + sequence * 250),
    sentAt: millis(start + sequence * 250),
    doneAt: millis(start + sequence * 250 + 1),
    outcome: symbol === 'x' ? 'timeout' : 'answered',
    answeredBy: symbol === 'x' ? undefined : symbol === 'o' ? 'old' : 'new',
  });
  const lines = [...symbols].flatMap((symbol, sequence) => live.add(request(symbol, sequence)));
  return [...lines, ...live.finish()].map((line) => line.text.trim());
}

describe('LiveLines', () => {
  test.each([
    { title: 'nothing sent, nothing shown', symbols: '', lines: [] },
    { title: 'a quiet stretch is one line', symbols: 'oooooooooooo', lines: ['0.0 s  old pod x 12'] },
    {
      title: 'a period in which the answers change shows each request',
      symbols: 'ooooooxxxxxx',
      lines: ['0.0 s  old pod x 4', '1.0 s  ooxx', '2.0 s  LOST x 4'],
    },
    {
      title: 'while both nodes are in use the lines go on',
      symbols: 'xNxNxNxNNNNN',
      lines: ['0.0 s  xNxN', '1.0 s  xNxN', '2.0 s  new pod x 4'],
    },
    { title: 'a last period that is not full is shown too', symbols: 'NNNNN', lines: ['0.0 s  new pod x 5'] },
  ])('$title', ({ symbols, lines }) => {
    expect(linesOf(symbols)).toEqual(lines);
  });
});
