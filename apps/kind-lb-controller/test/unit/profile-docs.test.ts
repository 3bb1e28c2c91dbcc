import { readFileSync } from 'node:fs';
import { knownProxyTiming, requiredServing, type RolloutShape, takenInAfter, takenOutAfter } from '@switchyard/loss';
import { seconds } from '@switchyard/core';
import { expect, test } from 'vitest';
import { healthProfiles } from '../../src/health-profile/health-profiles.ts';
import { durationText, rangeText } from '@switchyard/loss/workload';

const page = readFileSync(new URL('../../../../docs/operate/health-check-profiles.md', import.meta.url), 'utf8');
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line) => line.split('|').map((cell) => cell.trim().replaceAll('`', '')));

const shape: RolloutShape = {
  replicas: 1,
  nodes: 2,
  spread: 'perNode',
  strategy: { kind: 'RollingUpdate', maxSurge: 1, maxUnavailable: 0 },
  minReady: seconds(0),
};

test.each(Object.values(healthProfiles))('the page says of $name what the program does', (profile) => {
  const [, , , ...cells] = rows.find(([, name]) => name?.replace(' (default)', '') === profile.name) ?? [];
  const needs = (['kube-proxy', 'switchyard'] as const).map((proxy) =>
    requiredServing({ policy: 'Local', check: profile, proxy: knownProxyTiming(proxy), shape }),
  );
  const spans = [takenOutAfter(profile), takenInAfter(profile)];
  // The page has seconds everywhere.
  const inSeconds = (text: string): string => text.replace(/(\d+) ms$/, (_, ms: string) => `${Number(ms) / 1000} s`);
  const noneUp = {
    close: 'closes',
    all: 'all nodes',
    lastUp: `those of the last ${durationText(profile.lastUpFor)}`,
  };
  expect(cells.slice(0, 7)).toEqual([
    inSeconds(durationText(profile.interval)),
    `${profile.fall}`,
    ...spans.map(({ shortest, longest }) => inSeconds(rangeText(shortest, longest))),
    noneUp[profile.whenNoneUp],
    ...needs.map((need) => (need === undefined ? '' : durationText(need))),
  ]);
});
