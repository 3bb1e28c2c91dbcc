import { millis } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { openLoop } from './rollout/load-during-rollout.ts';
import type { RequestRecord } from './run-record.ts';

const start = 1_800_000_000_000;
const rate = 20;
const due = (sequence: number): number => start + (sequence * 1000) / rate;

function request(sequence: number, outcome: RequestRecord['outcome'] = 'answered'): RequestRecord {
  const at = millis(due(sequence));
  return { sequence, scheduledAt: at, sentAt: at, doneAt: at, outcome, answeredBy: undefined };
}

const all = (count: number): readonly RequestRecord[] => Array.from({ length: count }, (_, n) => request(n));
const outcomes = (sent: readonly RequestRecord[], until: number): string =>
  openLoop(sent, { rate, until: millis(until) })
    .map(({ outcome }) => (outcome === 'unsent' ? 'u' : outcome === 'answered' ? '.' : 'x'))
    .join('');

describe('what is due counts, sent or not', () => {
  test.each([
    { what: 'all were sent', sent: all(5), until: due(5), text: '.....' },
    { what: 'a gap', sent: [request(0), request(3), request(4)], until: due(5), text: '.uu..' },
    { what: 'a load that ended early', sent: all(3), until: due(6), text: '...uuu' },
    {
      what: 'requests of other times are in order',
      sent: [request(2), request(0), request(1)],
      until: due(3),
      text: '...',
    },
    { what: 'the first ones are missing', sent: [request(2)], until: due(3), text: 'uu.' },
    { what: 'more were sent than were due', sent: all(6), until: due(3), text: '......' },
    { what: 'one that is due this very moment may still be on its way', sent: all(3), until: due(3) + 1, text: '...' },
    { what: 'nothing was sent at all', sent: [], until: due(3), text: '' },
  ])('$what: $text', ({ sent, until, text }) => {
    expect(outcomes(sent, until)).toBe(text);
  });
});

test('a request that was not sent stands at its due time', () => {
  const [, second] = openLoop([request(0)], { rate, until: millis(due(2)) });
  expect(second).toMatchObject({ sequence: 1, scheduledAt: due(1), sentAt: due(1), outcome: 'unsent' });
});

// The article's outage: 12 s of 37 in which every second server is dead; each loss costs a closed loop half a second.
test('the share of losses is that of the time of the outage, where a closed loop that waits out its losses counts less', () => {
  const isLost = (sequence: number): boolean => sequence >= 100 && sequence < 340 && sequence % 2 === 0;
  const open = Array.from({ length: 740 }, (_, n) => request(n, isLost(n) ? 'timeout' : 'answered'));
  const closed: RequestRecord[] = [];
  for (let n = 0; n < 740; n += isLost(n) ? 10 : 1) closed.push(request(n, isLost(n) ? 'timeout' : 'answered'));
  const lostShare = (requests: readonly RequestRecord[]): number =>
    requests.filter(({ outcome }) => outcome !== 'answered').length / requests.length;
  const counted = lostShare(openLoop(closed, { rate, until: millis(due(740)) }));
  expect(lostShare(open)).toBeCloseTo(0.162, 3);
  expect(lostShare(closed)).toBeLessThan(0.05);
  expect(counted).toBeGreaterThanOrEqual(lostShare(open));
});
