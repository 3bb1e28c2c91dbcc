import { parseIp, systemClock } from '@switchyard/core';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkloadEvent } from '@switchyard/lab';
import type { App, PodPlace, StateMoment } from '@switchyard/rollout';
import { expect, test } from 'vitest';
import type { PreparedRollout } from '../../model/rollout.ts';
import { releasePods } from './release-pods.ts';

const app: App = {
  namespace: 'default',
  name: 'web',
  workload: 'deployment',
  port: 80,
  ipFamilies: ['IPv4'],
};
const old: PodPlace = { name: 'web-old', node: 'node1' };
const longer = 1500;

/** Releases a pod that is being deleted; `isUsed`: what the load balancer says of its node, undefined: there is none. */
function releasing(isUsed: boolean | undefined, longest: number) {
  const workloadEvents: WorkloadEvent[] = [];
  const ended: string[] = [];
  const healthOf = () => new Map([[old.node, isUsed]]);
  const setup = {
    experiment: { workloadEvents },
    loadBalancer: isUsed === undefined ? undefined : { healthOf },
  };
  const { name: pod, node } = old;
  const at = systemClock.now();
  const gone = { pod, node, at, namespace: 'default', uid: pod, gracePeriodSeconds: 60 };
  workloadEvents.push({ ...gone, kind: 'deletionTimestampSet' });
  const prepared = {
    setup,
    app,
    pace: { margin: 50, longest, lineInterval: 100 },
    endPod: async (pod: PodPlace) => void ended.push(pod.name),
  };
  const states: StateMoment[] = [];
  const publish = (...ready: readonly boolean[]): void => {
    const endpoints = ready.map((isReady, index) => ({ address: parseIp(`10.0.0.${index}`), ready: isReady }));
    states.push({ at, service: undefined, slices: [{ endpoints }] } as unknown as StateMoment);
  };
  publish(true);
  const release = releasePods(prepared as unknown as PreparedRollout, [old], { states });
  publish(false);
  return { release, ended, ready: () => publish(false, true) };
}

test('the only pod that serves is kept until another is ready, however long that takes', async () => {
  const { release, ended, ready } = releasing(undefined, 100);
  await using _ = release;
  await sleep(longer);
  expect(ended).toEqual([]);
  ready();
  await expect.poll(() => ended).toEqual([old.name]);
});

test.each([
  { what: 'stays', isUsed: true, longest: 10_000, ended: [] },
  { what: 'stays too long', isUsed: true, longest: 200, ended: [old.name] },
  { what: 'has gone', isUsed: false, longest: 10_000, ended: [old.name] },
])('a pod ends once the load balancer has left its node, which $what', async ({ isUsed, longest, ended }) => {
  const releasedFrom = releasing(isUsed, longest);
  await using _ = releasedFrom.release;
  releasedFrom.ready();
  await sleep(longer);
  expect(releasedFrom.ended).toEqual(ended);
});
