import { readFileSync } from 'node:fs';
import { millis } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { healthCheckOf, profiles } from '../profiles.ts';
import type { RunSettings } from '../run-record.ts';
import { summarise } from '../summarise.ts';
import { syntheticRun } from '../testing/synthetic-run.ts';
import { type ProfileCell, profileCell } from './profile-cell.ts';
import { type ProfileFigures, profilePage } from './profile-page.ts';

const folder = new URL('../../../../docs/generated/', import.meta.url);
const read = (name: string): string => readFileSync(new URL(name, folder), 'utf8');
const figures = JSON.parse(read('profile-losses.json')) as ProfileFigures;

/** As the measurement chose them for this cell. */
function settingsOf(cell: ProfileCell): RunSettings {
  const { timeScale, rate, runtime } = figures;
  const profile = profiles.find(({ name }) => name === cell.profile);
  if (profile === undefined) throw new Error(`there is no profile ${cell.profile} any more`);
  return {
    terminatingFallback: cell.terminatingFallback,
    proxyMode: 'nftables',
    rate: rate / timeScale,
    requestTimeout: millis(500),
    healthCheck: healthCheckOf(profile, {}, timeScale),
    runtime,
    fastDrain: cell.fastDrain,
    delayShutdown: millis(cell.drain * 1000 * timeScale),
    timeScale,
  };
}

describe('the published figures (./dev bench profiles measures them again)', () => {
  test('have their page', () => {
    expect(read('profile-losses.md')).toBe(profilePage(figures));
  });

  test('are of every profile, with the fallback off and on, and of every drain time', () => {
    const wanted = profiles.flatMap(({ name }) =>
      [false, true].flatMap((fallback) => [0, 5, 30].map((drain) => `${name} ${fallback} ${drain}`)),
    );
    const cells = figures.cells.map((cell) => `${cell.profile} ${cell.terminatingFallback} ${cell.drain}`);
    expect(cells.sort()).toEqual(wanted.sort());
  });

  test.each(
    figures.cells.map((cell) => [`${cell.profile}, ${cell.drain} s, ${cell.terminatingFallback}`, cell] as const),
  )('%s: what was lost is within what the model predicts today', (_, cell) => {
    const summary = { ...summarise(syntheticRun({ terminatingFallback: true }), () => []), lost: cell.lost };
    expect(profileCell(settingsOf(cell), cell.drain, summary).isWithin).toBe(cell.isWithin);
  });
});
