import { type LossCause } from '@switchyard/loss';
import { millis } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import type { LoadPath } from './run-record.ts';
import { summarise } from './summarise.ts';
import { proxyDelay } from './rollout-times.ts';
import { type PodTimes, runOf } from './testing/path-runs.ts';
import { deletedAt } from './testing/synthetic-run.ts';

const toNode = (node: string, endpoints: 'own' | 'all'): LoadPath => ({
  kind: 'node',
  name: `outside to ${node}`,
  ipFamily: 'IPv4',
  node,
  endpoints,
  frontend: 'nodePort',
});
const balanced: LoadPath = { kind: 'loadBalancer', name: 'load balancer', ipFamily: 'IPv4' };

const pod = (name: string, node: string, readyAt: number, going?: number, ended?: number): PodTimes => ({
  name,
  node,
  readyAt,
  ...(going === undefined ? {} : { deletedAt: going }),
  ...(ended === undefined ? {} : { endedAt: ended }),
});

/** The old pod goes first; its successor on the other node is ready 4 s later. */
const withoutSurge = [[pod('old', 'node1', -50, 0, 10), pod('new', 'node2', 4)]] as const;
/** Node by node: gone at 10 s, followed at 12 s; then the other node. */
const daemons = [
  [pod('old', 'node1', -50, 0, 10), pod('new', 'node1', 12)],
  [pod('old2', 'node2', -50, 12.1, 22), pod('new2', 'node2', 24)],
] as const;
/** Each node's new pod is ready before its old one goes. */
const surging = [
  [pod('old', 'node1', -50, 0, 10), pod('new', 'node1', -0.1)],
  [pod('old2', 'node2', -50, 5, 15), pod('new2', 'node2', 4.9)],
] as const;

type Options = Parameters<typeof runOf>[0];
const predicted = (options: Omit<Options, 'lost'>): readonly [number, number] => {
  const { least, most } = summarise(runOf(options), () => []).predicted;
  return [Math.round(least), Math.round(most)];
};

describe('what is predicted at 20/s, where the proxies do not report their applies', () => {
  test.each<{ what: string; options: Omit<Options, 'lost'>; range: readonly [number, number] }>([
    {
      what: 'all endpoints, no surge, no fallback: from the deletion until the new pod is known',
      options: { path: toNode('node1', 'all'), pods: withoutSurge, terminatingFallback: false },
      range: [78, 82],
    },
    {
      what: 'all endpoints, no surge, with the fallback: nothing',
      options: { path: toNode('node2', 'all'), pods: withoutSurge, terminatingFallback: true },
      range: [0, 0],
    },
    {
      what: 'all endpoints of a DaemonSet: others are ready, so the fallback is not needed',
      options: { path: toNode('node2', 'all'), pods: daemons, terminatingFallback: false },
      range: [0, 0],
    },
    {
      what: 'own endpoints of a DaemonSet, no fallback: until the next pod of this node, and nothing for the other node',
      options: { path: toNode('node1', 'own'), pods: daemons, terminatingFallback: false },
      range: [217, 263],
    },
    {
      what: 'own endpoints of a DaemonSet, with the fallback: from the end of the app',
      options: { path: toNode('node1', 'own'), pods: daemons, terminatingFallback: true },
      range: [40, 63],
    },
    {
      what: 'own endpoints of a DaemonSet that surges: nothing',
      options: { path: toNode('node1', 'own'), pods: surging, terminatingFallback: false },
      range: [0, 0],
    },
  ])('$what', ({ options, range }) => {
    expect(predicted(options)).toEqual(range);
  });
});

describe('a DaemonSet behind a load balancer that leaves each node 2 s after its pod went', () => {
  const moment = (second: number, node: string, isUp: boolean): NonNullable<Options['loadBalancer']>[number] => ({
    at: millis(deletedAt + second * 1000),
    node,
    isUp,
    reason: '',
  });
  const loadBalancer = [
    moment(-50, 'node1', true),
    moment(-50, 'node2', true),
    moment(2, 'node1', false),
    moment(12.5, 'node1', true),
    moment(14, 'node2', false),
    moment(24.5, 'node2', true),
  ];
  const options = { path: balanced, pods: daemons, loadBalancer };
  test('loses half of the requests of both moves without the fallback', () => {
    // At most 2 s at a half, then 0.4 s at all (node1 is not UP yet) and 1.5 s at a half; at least each 1.15 s later.
    expect(predicted({ ...options, terminatingFallback: false })).toEqual([16, 43]);
  });
  test('loses nothing with it', () => {
    expect(predicted({ ...options, terminatingFallback: true })).toEqual([0, 0]);
  });
});

test('losses of both moves of a DaemonSet have their causes', () => {
  const causes = (lost: readonly [number, number]): readonly LossCause[] => {
    const run = runOf({ path: toNode('node1', 'own'), pods: daemons, terminatingFallback: false, lost });
    return Object.keys(summarise(run, () => []).lostByCause) as LossCause[];
  };
  expect(causes([1, 2])).toEqual(['droppedByNodeAlone']);
  expect(causes([20, 21])).toEqual(['unexplained']);
});

describe('how long a proxy takes, as packets show', () => {
  const options = { path: toNode('node1', 'all'), pods: withoutSurge, terminatingFallback: false } as const;
  test('by the first answer of the new pod, where a path leads to all', () => {
    expect(proxyDelay(runOf({ ...options, lost: [0.1, 4.3] }))).toBeCloseTo(402, 0);
  });
  test("by the old node's health check", () => {
    const health = [{ at: millis(deletedAt + 250), node: 'node1', status: 503 }];
    expect(proxyDelay(runOf({ ...options, path: toNode('node1', 'own'), health }))).toBeCloseTo(340, 0);
  });
  test('by nothing: it is taken for a slow one', () => {
    expect(proxyDelay(runOf({ ...options, path: toNode('node1', 'own') }))).toBe(1150);
  });
});
