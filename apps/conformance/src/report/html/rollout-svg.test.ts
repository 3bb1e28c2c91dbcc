import { expect, test } from 'vitest';
import { aRollout } from '../../testing/report-builders.ts';
import { rolloutSvg } from './rollout-svg.ts';
import { safeSvg } from './safe-svg.ts';

test("the experiment's own picture is taken as it is", () => {
  const svg = '<svg viewBox="0 0 1 1"><text>mine</text></svg>';
  expect(rolloutSvg(aRollout({ svg }))).toBe(svg);
});

test('one that may not be shown is drawn anew', () => {
  const svg = rolloutSvg(aRollout({ svg: '<svg onload="alert(1)"></svg>' }));
  expect(svg).not.toContain('onload');
  expect(svg).toContain('Timeline: Deployment behind externalTrafficPolicy: Local');
});

test('lanes of events, requests by who answered, and what was lost', () => {
  const svg = rolloutSvg(aRollout());
  for (const text of ['pods', 'slices', 'web-1 2', 'timeout 2', 'web-2 1', '0.150 s: web-1 gets SIGTERM']) {
    expect(svg).toContain(`>${text}<`);
  }
  expect(svg.match(/class="request lost"/g)).toHaveLength(2);
  expect(svg.match(/class="sync"/g)).toHaveLength(2);
  expect(safeSvg(svg)).toBe(svg);
});

test('thousands of requests are as many marks as the picture has room for', () => {
  const outcomes = Array.from({ length: 20_000 }, (_, index) => [index, 'web-1'] as const);
  const marks = rolloutSvg(aRollout({ outcomes })).match(/class="request /g)?.length ?? 0;
  expect(marks).toBeGreaterThan(300);
  expect(marks).toBeLessThan(600);
});

test.each([
  { what: 'nothing', outcomes: [], events: [] },
  { what: 'a single moment', outcomes: [[5, 'web-1'] as const], events: [] },
])('$what can be drawn', ({ outcomes, events }) => {
  const svg = rolloutSvg(aRollout({ outcomes, events }));
  expect(svg).not.toMatch(/NaN|Infinity/);
});
