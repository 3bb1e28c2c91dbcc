import { type Millis, millis, systemClock } from '@switchyard/core';
import { type LoadResult, startLoad } from '@switchyard/lab';
import type { RequestRecord } from '../run-record.ts';
import { awaitCondition } from '../stage/await-condition.ts';
import { restart } from './app.ts';
import { podMoments } from './pod-moments.ts';
import type { RolloutProgress } from './progress.ts';
import { programsOf, type Scene } from './scene.ts';
import type { SettledApp } from './settle.ts';

/** Seconds of load before the rollout, and after the old pod is gone; scaled like everything else. */
const leadSeconds = 4;
const tailSeconds = 2.5;

/** Open-loop load before, during and after `kubectl rollout restart`, until the old pod is gone. */
export async function loadDuringRollout(
  scene: Scene,
  app: SettledApp,
  progress: RolloutProgress,
  signal: AbortSignal,
): Promise<readonly RequestRecord[]> {
  const { stage, settings } = scene;
  const scaled = (seconds: number): Millis => millis(seconds * 1000 * settings.timeScale);
  const longest = longestRollout(scene);
  await using load = startLoad(stage.lab.client, {
    url: `http://${app.address}:${app.port}/`,
    rate: settings.rate,
    timeout: settings.requestTimeout,
    duration: longest,
  });
  progress.loadStarted(systemClock.now(), app.pod);
  const showing = show(load, progress);
  showing.catch(() => undefined); // awaited below; when this ends early, the load is killed and nobody asks
  await systemClock.sleep(scaled(leadSeconds), signal);
  progress.step(`kubectl rollout restart deployment/${app.name}`);
  await restart(stage, app, signal);
  await awaitMove(scene, app, longest, signal);
  await systemClock.sleep(scaled(tailSeconds), signal);
  const results = await load.stop();
  await showing;
  progress.loadEnded();
  return results.map(requestOf);
}

function longestRollout({ settings }: Scene): Millis {
  const { interval, fall, rise } = settings.healthCheck;
  return millis(settings.delayShutdown * 2 + (fall + rise) * interval * 2 + 60_000);
}

async function awaitMove(scene: Scene, app: SettledApp, timeout: Millis, signal: AbortSignal): Promise<void> {
  const { stage, loadBalancer } = scene;
  const options = { timeout, programs: programsOf(scene), signal };
  await awaitCondition(
    'the old pod to be gone',
    async () =>
      stage.workloadEvents.some((event) => event.kind === 'objectGone' && event.pod === app.pod) ? true : undefined,
    options,
  );
  const oldNode = podMoments(stage.workloadEvents, app.name).find((moment) => moment.pod === app.pod)?.node ?? '';
  // An app that stops early is gone long before HAProxy notices, and requests are lost until it does.
  await awaitCondition(
    'HAProxy to use the new node only',
    async () => {
      const servers = loadBalancer.judgedOf(app);
      return servers.get(oldNode) === false && [...servers.values()].includes(true) ? true : undefined;
    },
    options,
  );
}

async function show(load: AsyncIterable<LoadResult>, progress: RolloutProgress): Promise<void> {
  for await (const result of inOrder(load)) progress.request(requestOf(result));
}

/** Results come as they end; a lost request ends half a second after its successors. Readers want the order of sending. */
async function* inOrder(load: AsyncIterable<LoadResult>): AsyncIterable<LoadResult> {
  const early = new Map<number, LoadResult>();
  let next = 0;
  for await (const result of load) {
    early.set(result.sequence, result);
    for (let found = early.get(next); found !== undefined; found = early.get(next)) {
      early.delete(next);
      next += 1;
      yield found;
    }
  }
}

function requestOf(result: LoadResult): RequestRecord {
  const { sequence, scheduledAt, sentAt, doneAt, outcome, answeredBy } = result;
  return { sequence, scheduledAt, sentAt, doneAt, outcome, answeredBy };
}
