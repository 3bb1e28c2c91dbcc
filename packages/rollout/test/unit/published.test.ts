import { readFileSync } from 'node:fs';
import { millis } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { healthCheckOf, profiles } from '../../src/profiles.ts';
import type { RunSettings } from '../../src/run-record.ts';
import { summarise } from '../../src/summarise.ts';
import { syntheticRun } from '../../src/testing/synthetic-run.ts';
import { profileCell } from '../../bench/profile-table/profile-cell.ts';

const page = readFileSync(new URL('../../../../docs/reference/profile-losses.md', import.meta.url), 'utf8');

/** One measured rollout, read from the page. */
interface PublishedRollout {
  readonly profile: string;
  readonly drain: number;
  readonly terminatingFallback: boolean;
  readonly lost: number;
  readonly isWithin: boolean;
}

const rows = page.matchAll(/^\| (\S+) \(.*\) \| (\d+) s \| \*\*(\d+)\*\*.* \| (.*) \| \*\*(\d+)\*\*.* \| (.*) \|$/gm);
const rollouts = [...rows].flatMap(([, profile = '', drain, offLost, offPredicted, onLost, onPredicted]) =>
  [
    { terminatingFallback: false, lost: Number(offLost), predicted: offPredicted },
    { terminatingFallback: true, lost: Number(onLost), predicted: onPredicted },
  ].map(({ terminatingFallback, lost, predicted }): PublishedRollout => ({
    profile,
    drain: Number(drain),
    terminatingFallback,
    lost,
    isWithin: predicted?.endsWith(' (outside)') === false,
  })),
);

const numberIn = (pattern: RegExp): number => Number(pattern.exec(page)?.[1] ?? 1);
const rate = numberIn(/ (\d+) requests per second/);
const timeScale = numberIn(/all durations were multiplied by ([\d.]+)/);

/** As the measurement chose them for this rollout. */
function settingsOf(rollout: PublishedRollout): RunSettings {
  const profile = profiles.find(({ name }) => name === rollout.profile);
  if (profile === undefined) throw new Error(`there is no profile ${rollout.profile} any more`);
  return {
    terminatingFallback: rollout.terminatingFallback,
    proxyMode: 'nftables',
    rate: rate / timeScale,
    requestTimeout: millis(500),
    healthCheck: healthCheckOf(profile, {}, timeScale),
    runtime: page.includes('container of a Docker Engine') ? 'docker' : 'process',
    fastDrain: false,
    delayShutdown: millis(rollout.drain * 1000 * timeScale),
    timeScale,
  };
}

describe('the published figures (./dev bench profiles measures them again)', () => {
  test('are of every profile, with the fallback off and on, and of every drain time', () => {
    const wanted = profiles.flatMap(({ name }) =>
      [false, true].flatMap((fallback) => [0, 5, 30].map((drain) => `${name} ${fallback} ${drain}`)),
    );
    const found = rollouts.map((one) => `${one.profile} ${one.terminatingFallback} ${one.drain}`);
    expect(found.sort()).toEqual(wanted.sort());
  });

  test('are counted', () => {
    const within = rollouts.filter(({ isWithin }) => isWithin).length;
    expect(page).toContain(`\n${within} of ${rollouts.length} rollouts lost what was predicted.`);
  });

  test.each(rollouts.map((one) => [`${one.profile}, ${one.drain} s, ${one.terminatingFallback}`, one] as const))(
    '%s: what was lost is within what the model predicts today',
    (_, rollout) => {
      const summary = { ...summarise(syntheticRun({ terminatingFallback: true }), () => []), lost: rollout.lost };
      expect(profileCell(settingsOf(rollout), rollout.drain, summary).isWithin).toBe(rollout.isWithin);
    },
  );
});
