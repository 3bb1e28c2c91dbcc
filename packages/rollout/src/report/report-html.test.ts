import { describe, expect, test } from 'vitest';
import type { PacketLoss, RunSummary } from '../run-record.ts';
import { deletedAt, syntheticRun } from '../testing/synthetic-run.ts';
import { reportHtml, resultRows, textTable } from './report-html.ts';
import { escapeHtml } from '@switchyard/host';
import { ticksOf } from './timeline-svg.ts';

const seen: PacketLoss = { at: deletedAt, node: 'node1', cause: 'noLocalEndpoint', why: 'none <b> here', count: 3 };
const first = { sequence: 104, at: 0.16, outcome: 'timeout', cause: 'droppedByNodeAlone', seen } as const;
const off: RunSummary = {
  terminatingFallback: false,
  requests: 740,
  answered: 598,
  lost: 142,
  lossWindow: { from: 0.16, to: 11.69 },
  lossWindowSeconds: 11.53,
  predicted: { least: 142, most: 142 },
  predictedLost: 143,
  lostByCause: { droppedByNodeAlone: 55, droppedByNodeShared: 87 },
  losses: [first],
  firstLoss: { ...first, explanation: ['a <b> step'] },
  comparison: { status: 'watched', atNodes: 142, seen: 141 },
  keyTimes: { oldNodeSynced: 0.05, oldNodeUnhealthy: 0.1, newUp: 2.93, oldDown: 11.7, appEnded: 30.03 },
};
const on: RunSummary = {
  ...off,
  terminatingFallback: true,
  answered: 740,
  lost: 0,
  lossWindow: undefined,
  lossWindowSeconds: 0,
  predicted: { least: 142, most: 142 },
  predictedLost: 0,
  lostByCause: {},
  losses: [],
  firstLoss: undefined,
  comparison: undefined,
};

describe('reportHtml', () => {
  const page = reportHtml([
    {
      run: {
        ...syntheticRun({ terminatingFallback: false }),
        packetLosses: { status: 'watched', losses: [seen, { ...seen, count: 4 }] },
      },
      summary: off,
    },
    { run: syntheticRun({ terminatingFallback: true }), summary: on },
  ]);

  test('is self-contained: no script, no address to fetch from', () => {
    expect(page).not.toMatch(/<script|<link|<img|https?:\/\/|url\(/);
  });

  test('draws every request of both runs once', () => {
    expect(page.match(/class="request /g)?.length).toBe(2 * 740);
    expect(page.match(/class="request lost"/g)?.length).toBe(
      syntheticRun({ terminatingFallback: false }).requests.filter((request) => request.outcome !== 'answered').length,
    );
  });

  test('shows when HAProxy took each node out and in', () => {
    expect(page).toContain('DOWN: +11.700 s to +32.000 s');
    expect(page).toContain('UP: +2.930 s to +32.000 s');
  });

  test('marks the loss window only where there is one', () => {
    expect(page.match(/class="loss"/g)?.length).toBe(1);
    expect(page).toContain('142 requests lost in 11.5 s');
    expect(page).toContain('All 740 requests were answered.');
  });

  test('every lost request says why', () => {
    expect(page).toContain('request 104 at +0.200 s: lost (timeout): none &#60;b&#62; here');
  });

  test('shows the packets that the agents saw dropped, and how far they agree with the model', () => {
    expect(page).toContain('<li>141 of 142 requests lost at a node, by the agents that watch its kernel</li>');
    expect(page).toContain('<li>node1: 7 packets noLocalEndpoint, none &#60;b&#62; here</li>');
  });

  test('escapes what it did not write itself', () => {
    expect(page).toContain('a &#60;b&#62; step');
    expect(escapeHtml(`<a href="x">'&`)).toBe('&#60;a href=&#34;x&#34;&#62;&#39;&#38;');
  });
});

test('the table has one row per run and lines its columns up', () => {
  const lines = textTable(resultRows([off, on])).split('\n');
  expect(lines).toHaveLength(4);
  expect(lines[2]).toMatch(
    /^off \(Kubernetes <= 1\.25\) +740 +598 +142 +11\.5 s \(\+0\.16\.\.\+11\.69\) +143 +dropped by the node/,
  );
  expect(lines[3]).toMatch(/^on \(Kubernetes >= 1\.26\) +740 +740 +0 +- +0 +-$/);
  expect(lines[0]?.indexOf('lost')).toBe(lines[2]?.indexOf('142'));
});

test.each([
  { from: -5, to: 32, ticks: [-5, 0, 5, 10, 15, 20, 25, 30] },
  { from: -0.5, to: 3.2, ticks: [-0.5, 0, 0.5, 1, 1.5, 2, 2.5, 3] },
])('ticks of $from to $to are round', ({ from, to, ticks }) => {
  const found = ticksOf({ from, to, left: 0, width: 100 }, 8).map((tick) => Number(tick.toFixed(3)));
  expect(found.map((tick) => (tick === 0 ? 0 : tick))).toEqual(ticks);
});
