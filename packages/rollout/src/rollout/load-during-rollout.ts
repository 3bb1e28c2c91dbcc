import { addressAndPort, type Millis, millis, systemClock } from '@switchyard/core';
import type { LoadResult, LoadRun } from '@switchyard/lab';
import { awaitCondition } from '../experiment/experiment.ts';
import { restart } from './app.ts';
import { servingPods } from './pod-moments.ts';
import { type RolloutProgress, programsOf, type RolloutSetup } from './rollout-setup.ts';
import { awaitPlaced, type LoadTarget, type SettledApp } from './settle.ts';
import type { RequestRecord } from '../run-record.ts';

/** Seconds of load before the rollout, and after the old pods are gone; scaled like everything else. */
const leadSeconds = 4;
const tailSeconds = 2.5;

export interface PathRequests {
  readonly target: LoadTarget;
  readonly requests: readonly RequestRecord[];
}

/** Open-loop load by each path before, during and after `kubectl rollout restart`, until the old pods are gone. Reports progress of the first path. */
export async function loadDuringRollout(
  setup: RolloutSetup,
  work: { readonly app: SettledApp; readonly targets: readonly LoadTarget[] },
  progress: RolloutProgress,
  signal: AbortSignal,
): Promise<readonly PathRequests[]> {
  const { app } = work;
  const scaled = (seconds: number): Millis => millis(seconds * 1000 * setup.settings.timeScale);
  const longest = longestRollout(setup, app.pods.length);
  await using stack = new AsyncDisposableStack();
  const loads = work.targets.map((target) => ({ target, load: stack.use(start(target, setup, longest)) }));
  progress.loadStarted(systemClock.now(), app.pods[0]?.name ?? '');
  const showing = loads[0] === undefined ? Promise.resolve() : show(loads[0].load, progress);
  showing.catch(() => undefined); // awaited below, unless this ends early and the load is killed
  await Promise.all(loads.map(({ load }) => firstResult(load))); // a busy machine takes its time to start them
  await systemClock.sleep(scaled(leadSeconds), signal);
  progress.step(`kubectl rollout restart ${app.workload}/${app.name}`);
  await restart(setup.experiment, app, signal);
  await awaitMove(setup, app, longest, signal);
  await systemClock.sleep(scaled(tailSeconds), signal);
  const schedule = { rate: setup.settings.rate, until: systemClock.now() };
  const done = await Promise.all(
    loads.map(async ({ target, load }) => ({
      target,
      requests: openLoop((await load.stop()).map(requestOf), schedule),
    })),
  );
  await showing;
  progress.loadEnded();
  return done;
}

function start({ from, address, port }: LoadTarget, { settings }: RolloutSetup, duration: Millis): LoadRun {
  const { rate, requestTimeout: timeout } = settings;
  return from.startLoad({ url: `http://${addressAndPort(address, port)}/`, rate, timeout, duration });
}

async function firstResult(load: LoadRun): Promise<void> {
  for await (const _ of load) return;
}

function longestRollout({ settings }: RolloutSetup, pods: number): Millis {
  const { interval, fall, rise } = settings.healthCheck;
  return millis(settings.delayShutdown * 2 * pods + (fall + rise) * interval * 2 + 60_000);
}

async function awaitMove(setup: RolloutSetup, app: SettledApp, timeout: Millis, signal: AbortSignal): Promise<void> {
  const { experiment } = setup;
  const options = { timeout, programs: programsOf(setup), signal };
  await awaitCondition(
    'the old pods to be gone and new ones ready',
    async () => {
      const gone = new Set(experiment.workloadEvents.flatMap(({ kind, pod }) => (kind === 'objectGone' ? [pod] : [])));
      const isMoved = app.pods.every(({ name }) => gone.has(name));
      return isMoved && servingPods(experiment.workloadEvents, app.name).length >= app.pods.length ? true : undefined;
    },
    { ...options, code: 'rollout.pods' },
  );
  // An app that stops early ends long before HAProxy notices, and requests are lost until it does.
  await awaitPlaced(setup, app, { ...options, what: 'HAProxy to use the nodes with new pods only' });
}

async function show(load: AsyncIterable<LoadResult>, progress: RolloutProgress): Promise<void> {
  for await (const result of inOrder(load)) progress.request(requestOf(result));
}

/** Orders results by sending: they arrive as they end, and a lost request ends half a second after its successors. */
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

/** Schedule of an open loop. */
export interface OpenLoop {
  /** Requests per second. */
  readonly rate: number;
  /** Wall clock: what was due before this had to be sent. */
  readonly until: Millis;
}

/**
 * Returns all requests that were due, in order: sent ones, and unsent ones in the gaps and at the end. A closed loop, which waits for
 * answers, sends less while requests are lost and would count too few losses; here every due request counts. Without any sent request
 * the start of the loop is unknown, and the result is empty.
 */
export function openLoop(sent: readonly RequestRecord[], { rate, until }: OpenLoop): readonly RequestRecord[] {
  const bySequence = new Map(sent.map((request) => [request.sequence, request]));
  const [any] = sent;
  if (any === undefined) return [];
  const period = 1000 / rate;
  const start = any.scheduledAt - any.sequence * period;
  // Requests may still fall due after `until` was read, and be sent; half a period is for clocks that differ.
  const due = Math.max(Math.ceil((until - start - period / 2) / period), ...[...bySequence.keys()].map((n) => n + 1));
  return Array.from(
    { length: due },
    (_, sequence) => bySequence.get(sequence) ?? unsent(sequence, start + sequence * period),
  );
}

function unsent(sequence: number, time: number): RequestRecord {
  const at = millis(time);
  return { sequence, scheduledAt: at, sentAt: at, doneAt: at, outcome: 'unsent', answeredBy: undefined };
}
