import { describe, expect, test } from 'vitest';
import { millis, seconds } from '../time.ts';
import { blackoutOf, causeOfLoss, predictLoss, type RolloutTimes } from './loss-model.ts';

/** Seconds after the deletionTimestamp: [black, new UP, old DOWN, what the measured page's model column says]. */
type Row = readonly [run: string, black: number, newUp: number, oldDown: number, model: number];

const times = (black: number, newUp: number, oldDown: number, by: 'node' | 'app' = 'node'): RolloutTimes => ({
  terminatingFallback: by === 'app',
  oldNodeSynced: by === 'node' ? seconds(black) : seconds(0.1),
  appEnded: by === 'app' ? seconds(black) : seconds(30),
  newUp: seconds(newUp),
  oldDown: seconds(oldDown),
  until: seconds(40),
});

// Measured with the real kube-proxy 1.25 (no fallback), app serves 30 s: black is the sync.
const withoutFallback: readonly Row[] = [
  ['5s x 3, run 1', 0.16, 2.93, 11.7, 143],
  ['5s x 3, run 2', 0.17, 1.83, 13.06, 145],
  ['5s x 3, run 3', 0.15, 4.72, 13.49, 179],
  ['2s x 1, run 1', 0.16, 0.19, 1.7, 16],
  ['2s x 1, run 2: nobody UP', 0.17, 1.86, 0.34, 34],
  ['2s x 1, run 3: nobody UP', 0.15, 2.02, 1.52, 37],
];

// kube-proxy with the fallback, app serves 30 s: black is the end of the app, long after HAProxy has left.
const withFallback: readonly Row[] = [
  ['1.25 gate, 5s x 3, run 1', 30.03, 0.85, 14.62, 0],
  ['1.25 gate, 5s x 3, run 2', 30.03, 2.15, 13.38, 0],
  ['1.25 gate, 2s x 1, run 3: nobody UP', 30.03, 1.59, 1.1, 10],
  ['1.36 iptables, 5s x 3, run 1', 30.03, 4.07, 12.84, 0],
  ['1.36 iptables, 2s x 1, run 2', 30.03, 0.77, 1.26, 0],
  ['1.36 nftables, 2s x 1, run 1: nobody UP', 30.03, 1.66, 1.16, 10],
  ['1.36 nftables, 5s x 3, run 3', 30.03, 1.67, 15.43, 0],
];

// The app stops at SIGTERM; the page gives its end as +0.03..+0.12 s.
const appStopsAtOnce: readonly Row[] = [
  ['1.25 iptables, 5s x 3, run 1', 0.06, 4.33, 13.09, 173],
  ['1.25 iptables, 5s x 3, run 2', 0.06, 2.44, 13.67, 160],
  ['1.25 iptables, 5s x 3, run 3', 0.06, 1.77, 10.53, 121],
  ['1.25 iptables, 2s x 1, run 1: nobody UP', 0.06, 1.67, 1.18, 32],
  ['1.25 iptables, 2s x 1, run 2', 0.06, 1.54, 2.03, 34],
  ['1.25 iptables, 2s x 1, run 3', 0.06, 0.12, 1.61, 15],
  ['1.25 gate, 5s x 3, run 1', 0.06, 1.54, 10.31, 117],
  ['1.25 gate, 5s x 3, run 2', 0.06, 0.51, 11.69, 121],
  ['1.25 gate, 5s x 3, run 3', 0.06, 2.73, 11.52, 141],
  ['1.25 gate, 2s x 1, run 1: nobody UP', 0.06, 1.01, 0.54, 19],
  ['1.25 gate, 2s x 1, run 2', 0.06, 0.72, 1.19, 18],
  ['1.25 gate, 2s x 1, run 3: nobody UP', 0.06, 1.22, 0.75, 23],
  ['1.36 iptables, 5s x 3, run 1', 0.06, 2.26, 16.01, 181],
  ['1.36 iptables, 5s x 3, run 2', 0.06, 0.15, 11.37, 115],
  ['1.36 iptables, 5s x 3, run 3', 0.06, 2.15, 15.89, 179],
  ['1.36 iptables, 2s x 1, run 1', 0.06, 0.62, 2.11, 26],
  ['1.36 nftables, 5s x 3, run 1', 0.06, 3.27, 12.02, 152],
  ['1.36 nftables, 5s x 3, run 2', 0.06, 3.82, 15.06, 188],
  ['1.36 nftables, 5s x 3, run 3', 0.06, 2.37, 11.11, 134],
  ['1.36 nftables, 2s x 1, run 2', 0.06, 2.05, 2.55, 45],
];

// The app serves 5 s: the fallback works, then the app is gone before the load balancer noticed.
const appServesFiveSeconds: readonly Row[] = [
  ['iptables, run 1', 5.03, 3.46, 12.23, 72],
  ['iptables, run 2', 5.03, 2.55, 13.79, 88],
  ['iptables, run 3', 5.03, 1.32, 15.09, 101],
  ['nftables, run 1', 5.03, 1.26, 15.03, 100],
  ['nftables, run 2', 5.03, 4.5, 15.74, 107],
  ['nftables, run 3', 5.03, 4.7, 13.46, 84],
  ['nftables 10 ms, run 1', 5.03, 1.92, 10.69, 56],
  ['nftables 10 ms, run 2', 5.03, 2.08, 13.31, 83],
  ['nftables 10 ms, run 3', 5.03, 1.36, 10.13, 51],
  ['nftables 10 ms, run 4', 5.03, 2.61, 13.85, 88],
  ['nftables 10 ms, run 5', 5.03, 2.76, 11.53, 65],
  ['nftables 10 ms, run 6', 5.03, 1.77, 13.01, 79],
  ['nftables 10 ms, run 7', 5.03, 0.31, 14.08, 90],
  ['nftables 10 ms, run 8', 5.03, 4.01, 10.25, 52],
];

describe('predictLoss agrees with the model column of the measured rollouts', () => {
  test.each(withoutFallback)('no fallback, %s', (_, black, newUp, oldDown, model) => {
    expect(Math.abs(predictLoss(times(black, newUp, oldDown), 20).lost - model)).toBeLessThanOrEqual(0.6);
  });
  test.each([...withFallback, ...appStopsAtOnce, ...appServesFiveSeconds])(
    'app %s',
    (_, black, newUp, oldDown, model) => {
      // The page gives event times in hundredths and the app's end as a range: one request is 50 ms.
      expect(Math.abs(predictLoss(times(black, newUp, oldDown, 'app'), 20).lost - model)).toBeLessThanOrEqual(1.5);
    },
  );
});

describe('predictLoss', () => {
  test('splits the loss by what the load balancer had UP', () => {
    const prediction = predictLoss(times(0.16, 2.93, 11.7), 20);
    expect(prediction.alone).toBeCloseTo(55.4);
    expect(prediction.shared).toBeCloseTo(87.7);
    expect(prediction.nobody).toBe(0);
  });
  test('a node that never comes UP loses until the end of the observation', () => {
    const never = { ...times(0, 1, 2), newUp: undefined };
    expect(predictLoss(never, 10).lost).toBeCloseTo(400);
  });
  test('nothing stops answering: nothing is lost', () => {
    expect(predictLoss({ ...times(1, 1, 20, 'app'), appEnded: undefined }, 20).lost).toBe(0);
  });
});

describe('blackoutOf', () => {
  test.each([
    { title: 'without the fallback the node drops at its sync', times: times(0.16, 1, 2), by: 'node', at: 160 },
    {
      title: 'an app that ends before the sync is to blame',
      times: { ...times(1, 1, 2), appEnded: millis(50) },
      by: 'app',
      at: 50,
    },
    { title: 'with the fallback only the app can go', times: times(30, 1, 2, 'app'), by: 'app', at: 30_000 },
  ])('$title', ({ times, by, at }) => {
    expect(blackoutOf(times)).toEqual({ by, at });
  });
});

describe('causeOfLoss', () => {
  const slack = millis(100);
  test.each([
    { title: 'before the new node is UP', sent: 1, times: times(0.16, 2.93, 11.7), cause: 'droppedByNodeAlone' },
    { title: 'while both are UP', sent: 5, times: times(0.16, 2.93, 11.7), cause: 'droppedByNodeShared' },
    {
      title: 'a little before the sync was seen',
      sent: 0.1,
      times: times(0.16, 2.93, 11.7),
      cause: 'droppedByNodeAlone',
    },
    { title: 'while nobody is UP', sent: 1.4, times: times(0.16, 1.66, 1.16), cause: 'noServerUp' },
    { title: 'after the app has gone', sent: 6, times: times(5, 2, 12, 'app'), cause: 'appGone' },
    { title: 'after the old node is DOWN', sent: 13, times: times(0.16, 2.93, 11.7), cause: 'unexplained' },
    { title: 'long before anything happened', sent: -3, times: times(0.16, 2.93, 11.7), cause: 'unexplained' },
  ])('$title: $cause', ({ sent, times, cause }) => {
    expect(causeOfLoss(seconds(sent), times, slack)).toBe(cause);
  });
});
