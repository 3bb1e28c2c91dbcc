import { millis } from '@switchyard/core';
import { expect, test } from 'vitest';
import { NodeClock } from './node-clock.ts';

/** Lines of a node: its time, when the request was sent, and when the line arrived here. */
type Lines = readonly (readonly [time: number, sent: number | undefined, arrived: number])[];

test.each<[what: string, lines: Lines, here: number, accuracy: number | undefined]>([
  ['a node that is 1000 ms behind', [[1000, 1995, 2010]], 2002, 8],
  [
    'a later line that came quicker',
    [
      [1000, 1995, 2010],
      [3000, undefined, 4000],
    ],
    1997,
    3,
  ],
  [
    'a second request',
    [
      [1000, 1995, 2010],
      [3000, 3999, 4010],
    ],
    2004,
    6,
  ],
  [
    'a line that waited for long changes nothing',
    [
      [1000, 1995, 2010],
      [1500, undefined, 5000],
    ],
    2002,
    8,
  ],
  ['no line of a request', [[1000, undefined, 2010]], 2010, undefined],
  ['no line at all', [], 1000, undefined],
])('%s', (_, lines, here, accuracy) => {
  const clock = new NodeClock();
  for (const [time, sent, arrived] of lines)
    clock.note(millis(time), { sent: sent === undefined ? undefined : millis(sent), arrived: millis(arrived) });
  expect(clock.toHere(millis(1000))).toBe(here);
  expect(clock.accuracy).toBe(accuracy);
});
