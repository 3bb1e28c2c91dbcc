import { millis } from '@switchyard/core';
import { findCgroupObstacle } from '@switchyard/lab';
import { describe, expect, test } from 'vitest';
import { explainFrom, labSettings } from '../../src/explain-at.ts';
import type { RunRecord, RunSettings, RunSummary } from '../../src/run-record.ts';
import { silentProgress } from '../../src/rollout/rollout-setup.ts';
import { runRollout } from '../../src/rollout/run-rollout.ts';
import { summarise } from '../../src/summarise.ts';
import { articleHealthCheck } from '../../src/testing/synthetic-run.ts';

/** The article's experiment with all durations divided by ten; the rate stays, so that a request is a tenth of the loss. */
const timeScale = 0.1;
const settings: Omit<RunSettings, 'terminatingFallback' | 'runtime'> = {
  rate: 50,
  requestTimeout: millis(500),
  proxyMode: 'nftables',
  healthCheck: articleHealthCheck(timeScale),
  fastDrain: false,
  delayShutdown: millis(30_000 * timeScale),
  timeScale,
};
const explainAt = explainFrom(labSettings);

function run(
  fallback: 'off' | 'on',
  { runtime = 'process', proxyMode = 'nftables' }: Partial<Pick<RunSettings, 'runtime' | 'proxyMode'>> = {},
): Promise<RunRecord> {
  const signal = AbortSignal.timeout(runtime === 'docker' ? 600_000 : 90_000); // it may have to fetch Docker
  return runRollout(
    {
      labName: `t${fallback}${runtime[0]}${proxyMode[0]}`,
      settings: { ...settings, proxyMode, runtime, terminatingFallback: fallback === 'on' },
    },
    silentProgress,
    signal,
  );
}

describe('a rolling update behind a real HAProxy', () => {
  test('without the fallback loses what the model predicts, dropped by the node, and the oracle says so', async () => {
    const record = await run('off');
    expectPredictedLoss(record);
  });

  test('the same in the eBPF mode, without and with the fallback', async ({ skip }) => {
    const obstacle = await findCgroupObstacle();
    skip(obstacle !== undefined, obstacle);
    const [off, on] = await Promise.all([run('off', { proxyMode: 'ebpf' }), run('on', { proxyMode: 'ebpf' })]);
    expectPredictedLoss(off);
    expectNoLoss(on);
  });

  test.each(['process', 'docker'] as const)(
    'with the fallback loses nothing; HAProxy in a %s',
    async (runtime) => expectNoLoss(await run('on', { runtime })),
    660_000,
  );
});

function expectPredictedLoss(record: RunRecord): void {
  const summary = summarise(record, explainAt);
  expect(summary.lost).toBeGreaterThan(0);
  // Observers see an event some ten milliseconds beside the packets; 50 requests a second make that a request or two.
  expect(Math.abs(summary.lost - summary.predictedLost)).toBeLessThanOrEqual(6);
  expect(summary.lostByCause.unexplained ?? 0).toBeLessThanOrEqual(1);
  expect(summary.firstLoss?.cause).toMatch(/^droppedByNode/);
  expect(summary.firstLoss?.explanation.at(-1)).toBe(`verdict on ${record.moves[0].oldPod.node}: drop`);
  expectSameCauses(summary);
  expect(record.moves[0].oldPod.node).not.toBe(record.moves[0].newPod.node);
}

/** The agents saw packets of each request that a node dropped. */
function expectSameCauses({ comparison }: RunSummary): void {
  expect(comparison?.status).toBe('watched');
  if (comparison?.status !== 'watched') return;
  expect(comparison.atNodes).toBeGreaterThan(0);
  expect(comparison.seen).toBe(comparison.atNodes);
}

function expectNoLoss(record: RunRecord): void {
  const lost = record.requests.filter((request) => request.outcome !== 'answered');
  expect(lost).toEqual([]);
  const { packetLosses, moves } = record;
  expect(packetLosses?.status).toBe('watched');
  // Before, HAProxy may still take a node without an endpoint for UP, and try the next one.
  const duringRollout =
    packetLosses?.status === 'watched' ? packetLosses.losses.filter(({ at }) => at > moves[0].deletedAt) : [];
  expect(duringRollout).toEqual([]);
  expect(record.requests.length).toBeGreaterThan(100);
  const answeredBy = new Set(record.requests.map((request) => request.answeredBy));
  expect([...answeredBy].sort()).toEqual([record.moves[0].oldPod.name, record.moves[0].newPod.name].sort());
}
