import { millis } from '@switchyard/core';
import { expect, test } from 'vitest';
import type { HeldConnection } from './rollout-verdict.ts';
import { holdVerdict } from './rollout-verdict.ts';

type HoldFailure = NonNullable<HeldConnection['failure']>;

const end = millis(10_000);
const failure = (status: HoldFailure['status'], askedAt: number, noticedAt: number): HoldFailure => ({
  status,
  askedAt: millis(askedAt),
  noticedAt: millis(noticedAt),
});

test.each([
  { what: 'never failed', failure: undefined, verdict: 'held' },
  { what: 'was closed when its pod ended', failure: failure('closed', 9900, 10_010), verdict: 'held' },
  { what: 'was reset by the pod that was killed', failure: failure('reset', 9900, 9950), verdict: 'held' },
  { what: 'was not answered after its pod had ended', failure: failure('timeout', 9950, 10_950), verdict: 'held' },
  { what: 'was reset early', failure: failure('reset', 8900, 9000), verdict: "reset 1.00 s before its pod's end" },
  {
    what: 'was cut silently, which was noticed after the end',
    failure: failure('timeout', 9200, 10_200),
    verdict: "timeout 0.80 s before its pod's end",
  },
])('a connection that $what: $verdict', ({ failure: first, verdict }) => {
  expect(holdVerdict({ path: 'p', pod: 'a', echoed: 5, failure: first }, end)).toBe(verdict);
});

test.each([
  { what: 'could not be opened', pod: undefined, echoed: 0, failure: undefined },
  { what: 'never used', pod: 'a', echoed: 0, failure: undefined },
  { what: 'closed though its pod stayed', pod: 'a', echoed: 3, failure: failure('closed', 1, 2) },
])('$what', ({ what, ...connection }) => {
  expect(holdVerdict({ path: 'p', ...connection }, undefined)).toBe(what);
});
