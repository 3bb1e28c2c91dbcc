import { millis } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { spansOf } from './rollout-times.ts';

const window = { from: millis(100), to: millis(200) };
const at = (time: number, value: string): { readonly at: ReturnType<typeof millis>; readonly value: string } => ({
  at: millis(time),
  value,
});

describe('spansOf', () => {
  test.each([
    { title: 'nothing observed: nothing drawn', moments: [], spans: [] },
    {
      title: 'what was true when the window opened starts at its edge',
      moments: [at(50, 'a')],
      spans: [['a', 100, 200]],
    },
    {
      title: 'what ended before the window is left out',
      moments: [at(50, 'a'), at(100, 'b')],
      spans: [['b', 100, 200]],
    },
    {
      title: 'a change splits the window',
      moments: [at(90, 'a'), at(150, 'b')],
      spans: [
        ['a', 100, 150],
        ['b', 150, 200],
      ],
    },
    {
      title: 'order of observation does not matter',
      moments: [at(150, 'b'), at(90, 'a')],
      spans: [
        ['a', 100, 150],
        ['b', 150, 200],
      ],
    },
    {
      title: 'equal neighbours are one span',
      moments: [at(90, 'a'), at(120, 'a'), at(150, 'b')],
      spans: [
        ['a', 100, 150],
        ['b', 150, 200],
      ],
    },
    {
      title: 'what starts after the window is left out',
      moments: [at(120, 'a'), at(250, 'b')],
      spans: [['a', 120, 200]],
    },
  ])('$title', ({ moments, spans }) => {
    expect(spansOf(moments, window).map((span) => [span.value, span.from, span.to])).toEqual(spans);
  });
});
