import { millis } from '@switchyard/core';
import { type RolloutTimes } from '@switchyard/loss';
import { describe, expect, test } from 'vitest';
import type { PacketLoss, RunRecord, SyncMoment } from './run-record.ts';
import { rolloutTimes } from './rollout-times.ts';
import { summarise } from './summarise.ts';
import { deletedAt, syntheticRun } from './testing/synthetic-run.ts';

const explainAt = (): readonly string[] => ['because'];
const timesOf = (run: RunRecord): RolloutTimes =>
  rolloutTimes(run, run.moves[0], { going: 'latest', coming: 'latest' });

describe('summarise', () => {
  test('without the fallback: the measured loss, its window, its causes, and a model within 3 requests', () => {
    const summary = summarise(syntheticRun({ terminatingFallback: false }), explainAt);
    expect(summary.requests).toBe(740);
    expect(summary.lost + summary.answered).toBe(740);
    expect(summary.lostByCause).toEqual({ droppedByNodeAlone: 55, droppedByNodeShared: 87 });
    expect(summary.losses.map((loss) => loss.cause).slice(54, 57)).toEqual([
      'droppedByNodeAlone',
      'droppedByNodeShared',
      'droppedByNodeShared',
    ]);
    expect(Math.abs(summary.predictedLost - summary.lost)).toBeLessThanOrEqual(3);
    expect(summary.lossWindow?.from).toBeCloseTo(0.2, 1);
    expect(summary.lossWindowSeconds).toBeCloseTo(11.4, 2);
    expect(summary.firstLoss).toMatchObject({
      cause: 'droppedByNodeAlone',
      explanation: ['because'],
      outcome: 'timeout',
    });
  });

  test('an agent that is faster than the observer of its slices is not taken for one that waits for the next change', () => {
    const run = syntheticRun({ terminatingFallback: false });
    const knewAt = run.endpoints.find(({ node, state }) => node === 'node1' && state !== 'ready')?.at ?? 0;
    const syncs = (run.syncs ?? []).map((sync) =>
      sync.at === timesOf(run).oldNodeSynced ? before(sync, knewAt) : sync,
    );
    const times = timesOf({ ...run, syncs });
    expect(times.oldNodeSynced).toBe(knewAt - 3);
    expect(Math.abs(summarise({ ...run, syncs }, explainAt).predictedLost - 142)).toBeLessThanOrEqual(4);
  });

  test('the first loss is explained by the state that the node acted on, even if the observer noted it later', () => {
    const run = syntheticRun({ terminatingFallback: false });
    const first = run.requests.find(({ outcome }) => outcome !== 'answered')?.sentAt ?? 0;
    const endpoints = run.endpoints.map((moment) =>
      moment.node === 'node1' && moment.state === 'servingTerminating' ? { ...moment, at: millis(first + 3) } : moment,
    );
    const syncs = (run.syncs ?? []).map((sync) =>
      sync.at === timesOf(run).oldNodeSynced ? before(sync, first) : sync,
    );
    const asked: number[] = [];
    const note = (_: RunRecord, at: number): readonly string[] => [String(asked.push(at))];
    expect(summarise({ ...run, endpoints, syncs }, note).firstLoss?.cause).toBe('droppedByNodeAlone');
    expect(asked).toEqual([first + 3]);
  });

  test('with the fallback nothing is lost and nothing predicted', () => {
    const summary = summarise(syntheticRun({ terminatingFallback: true }), explainAt);
    expect(summary).toMatchObject({ lost: 0, answered: 740, predictedLost: 0, lostByCause: {}, lossWindowSeconds: 0 });
    expect(summary.lossWindow).toBeUndefined();
    expect(summary.firstLoss).toBeUndefined();
  });

  test('an app that stopped accepting is the cause, independent of the node', () => {
    const run = syntheticRun({ terminatingFallback: false });
    const pods = run.pods.map((moment) => (moment.phase === 'ended' ? { ...moment, at: deletedAt } : moment));
    const fallback: RunRecord = { ...run, pods, settings: { ...run.settings, terminatingFallback: true } };
    const summary = summarise(fallback, explainAt);
    expect(summary.lostByCause).toEqual({ appGone: 142 });
    expect(summary.firstLoss?.explanation).toEqual([
      'because',
      'by then the old app had stopped accepting connections',
    ]);
  });

  test('a request is lost for what an agent saw in its time, if that is a cause of the model', () => {
    const run = syntheticRun({ terminatingFallback: false });
    const first = run.requests.find(({ outcome }) => outcome !== 'answered');
    const loss = (after: number, cause = 'noLocalEndpoint'): PacketLoss => {
      const at = millis((first?.sentAt ?? 0) + after);
      return { at, node: 'node1', cause, why: `${cause} at ${after}`, count: 2 };
    };
    const seenOf = (...losses: readonly PacketLoss[]) =>
      summarise({ ...run, packetLosses: { status: 'watched', losses } }, explainAt);
    const summary = seenOf(loss(-1), loss(10, 'noRoute'), loss(600));
    expect(summary.losses[0]?.seen?.why).toBe('noLocalEndpoint at 600');
    expect(summary.firstLoss?.explanation[0]).toBe('the kernel of node1 dropped its packets (noLocalEndpoint)');
    expect(summary.comparison).toEqual({ status: 'watched', atNodes: 142, seen: 13 });
    expect(seenOf(loss(1501)).losses[0]?.seen).toBeUndefined();
    const unwatched = { status: 'unwatched', why: 'no rights' } as const;
    expect(summarise({ ...run, packetLosses: unwatched }, explainAt).comparison).toEqual(unwatched);
  });

  test('a loss that no event explains is called unexplained, not guessed', () => {
    const run = syntheticRun({ terminatingFallback: true });
    const requests = run.requests.map((request, index) =>
      index === 700 ? { ...request, outcome: 'reset' as const } : request,
    );
    expect(summarise({ ...run, requests }, explainAt).lostByCause).toEqual({ unexplained: 1 });
  });

  test('while HAProxy has no node UP the reason is HAProxy, not the node', () => {
    const run = syntheticRun({ terminatingFallback: true });
    const hole: RunRecord = {
      ...run,
      loadBalancer: run.loadBalancer.map((moment) =>
        moment.node === 'node1' && !moment.isUp ? { ...moment, at: (deletedAt + 1000) as typeof deletedAt } : moment,
      ),
      requests: run.requests.map((request) =>
        request.sentAt >= deletedAt + 1500 && request.sentAt < deletedAt + 2000
          ? { ...request, outcome: 'empty' }
          : request,
      ),
    };
    const summary = summarise(hole, explainAt);
    expect(summary.lostByCause).toEqual({ noServerUp: 10 });
    expect(summary.firstLoss?.explanation).toEqual(['HAProxy had no server UP and closed the connection']);
  });
});

test('rolloutTimes takes the first apply after the slice said terminating', () => {
  const times = timesOf(syntheticRun({ terminatingFallback: false }));
  const relative = (at: number | undefined): number => Math.round(((at ?? 0) - deletedAt) * 100) / 100_000;
  expect([times.oldNodeSynced, times.appEnded, times.newUp, times.oldDown].map(relative)).toEqual([
    0.05, 30.03, 2.93, 11.7,
  ]);
});

function before(sync: SyncMoment, at: number): SyncMoment {
  return { ...sync, at: millis(at - 3) };
}

describe('when the load balancer stopped using the old node', () => {
  /** Old node DOWN at +1 s, new node UP at +2.93 s. */
  function leftAfter(healthCheck: Partial<RunRecord['settings']['healthCheck']>, fastDrain = false): number {
    const run = syntheticRun({ terminatingFallback: true });
    const loadBalancer = run.loadBalancer.map((moment) =>
      moment.node === 'node1' && !moment.isUp && !fastDrain ? { ...moment, at: millis(deletedAt + 1000) } : moment,
    );
    const settings = { ...run.settings, fastDrain, healthCheck: { ...run.settings.healthCheck, ...healthCheck } };
    return ((timesOf({ ...run, settings, loadBalancer }).oldDown ?? 0) - deletedAt) / 1000;
  }

  test.each([
    ['it held the node DOWN, and uses no recently UP nodes', leftAfter({}), 1],
    ['a node is used until the other is UP', leftAfter({ whenNoneUp: 'lastUp', lastUpFor: millis(10_000) }), 2.93],
    ['but no longer than it may', leftAfter({ whenNoneUp: 'lastUp', lastUpFor: millis(500) }), 1.5],
    ['all nodes are used until the other is UP', leftAfter({ whenNoneUp: 'all' }), 2.93],
    ['with fast drain: the other is UP, long before checks fail', leftAfter({}, true), 2.93],
  ])('%s', (_, seconds, expected) => {
    expect(seconds).toBeCloseTo(expected, 2);
  });
});
