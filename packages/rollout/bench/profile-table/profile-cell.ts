import {
  fastDrainTiming,
  withFastDrain,
  knownProxyTiming,
  predictRollout,
  type RolloutSetting,
} from '@switchyard/loss';
import { type Millis, millis } from '@switchyard/core';
import type { RunSettings, RunSummary } from '../../src/run-record.ts';

/** One rollout of the table. Requests and seconds are those of an unscaled experiment with `rate` requests per second. */
export interface ProfileCell {
  readonly profile: string;
  readonly interval: number;
  readonly fall: number;
  readonly terminatingFallback: boolean;
  readonly fastDrain: boolean;
  /** Seconds that the app served after SIGTERM. */
  readonly drain: number;
  readonly requests: number;
  readonly lost: number;
  /** From the first to the last lost request. */
  readonly lossWindow: number;
  /** Loss that the model predicts from the observed event times. */
  readonly predictedFromEvents: number;
  /** Loss that the model predicts from the profile, the app and the proxy alone. */
  readonly predicted: { readonly best: number; readonly expected: number; readonly worst: number };
  /** Whether the loss lies between the best and the worst, with `tolerance` to either side. */
  readonly isWithin: boolean;
}

/** Possible difference between packets and observed events, in real time. */
const slack = millis(100);

/** The cell of one rollout. `settings.rate` is the real rate of the load; `drain` is in unscaled seconds. */
export function profileCell(settings: RunSettings, drain: number, summary: RunSummary): ProfileCell {
  const { best, expected, worst } = predictRollout(rolloutSetting(settings));
  const requestsOf = (time: Millis): number => (time / 1000) * settings.rate;
  const { lost } = summary;
  const tolerance = requestsOf(slack);
  return {
    profile: settings.healthCheck.profile,
    interval: round(settings.healthCheck.interval / 1000 / settings.timeScale),
    fall: settings.healthCheck.fall,
    terminatingFallback: settings.terminatingFallback,
    fastDrain: settings.fastDrain,
    drain,
    requests: summary.requests,
    lost,
    lossWindow: round(summary.lossWindowSeconds / settings.timeScale),
    predictedFromEvents: summary.predictedLost,
    predicted: {
      best: round(requestsOf(best)),
      expected: round(requestsOf(expected)),
      worst: round(requestsOf(worst)),
    },
    isWithin: lost >= requestsOf(best) - tolerance && lost <= requestsOf(worst) + tolerance,
  };
}

/** The experiment as the model takes it: the article's Deployment, our agent; durations as they really were. */
export function rolloutSetting(settings: RunSettings): RolloutSetting {
  const { healthCheck, terminatingFallback, delayShutdown, timeScale, fastDrain } = settings;
  const proxy = knownProxyTiming('switchyard');
  return {
    policy: 'Local',
    check: fastDrain ? withFastDrain(healthCheck) : healthCheck,
    proxy: { ...proxy, terminatingFallback },
    app: {
      startup: millis(1000 * timeScale),
      preStop: millis(0),
      drain: delayShutdown,
      gracePeriod: millis(Math.max(30_000 * timeScale, delayShutdown)),
    },
    shape: {
      replicas: 1,
      nodes: 2,
      spread: 'perNode',
      strategy: { kind: 'RollingUpdate', maxSurge: 1, maxUnavailable: 0 },
      minReady: millis(0),
    },
    ...(fastDrain ? { fastDrain: fastDrainTiming } : {}),
  };
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
