import { expect, test } from 'vitest';
import { measureProfiles } from '../../bench/profile-table/measure-profiles.ts';
import { profiles } from '../../src/profiles.ts';
import { silentProgress } from '../../src/rollout/rollout-setup.ts';
import { summarise } from '../../src/summarise.ts';

// The long form, 20 rollouts each in real time and behind others' checks too: ./dev bench rollout-no-hole
test('behind our profile, one failure every 2 s, rollouts lose nothing: some node is always UP', async () => {
  const options = {
    labName: 'nohole',
    profiles: profiles.filter(({ name }) => name === 'switchyard'),
    fallbacks: [true],
    drains: [10, 10, 10], // long after HAProxy has left the old node, however busy the machine is
    rounds: 1,
    fastDrain: false,
    proxyMode: 'nftables',
    runtime: 'process',
    timeScale: 0.2,
    rate: 10,
  } as const;
  const rollouts = [];
  for await (const group of measureProfiles(options, silentProgress, AbortSignal.timeout(90_000))) {
    rollouts.push(...group);
  }
  expect(rollouts).toHaveLength(3);
  for (const { run } of rollouts) {
    expect(run.requests.length).toBeGreaterThan(100);
    const { losses, keyTimes } = summarise(run, () => []);
    expect(losses, JSON.stringify(keyTimes)).toEqual([]);
    expect(new Set(run.requests.map(({ answeredBy }) => answeredBy))).toEqual(
      new Set([run.moves[0].oldPod.name, run.moves[0].newPod.name]),
    );
  }
});
