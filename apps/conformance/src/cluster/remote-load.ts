import { asError, type Millis, millis, systemClock } from '@switchyard/core';
import { type LoadOptions, type LoadResult, LoadResults, type LoadRun } from '@switchyard/lab';
import { callPod, type CalledPod, type Caller } from './traffic-caller.ts';

interface RemoteLoadPlace {
  readonly caller: Caller;
  readonly pod: CalledPod;
  readonly url: string;
}

const defaultRate = 20;
const defaultTimeout = millis(500);

/** An open loop in a pod, which starts at once. Times of its results are of this machine's clock. */
export function startRemoteLoad(
  { caller, pod, url }: RemoteLoadPlace,
  { rate = defaultRate, timeout = defaultTimeout, duration }: Omit<LoadOptions, 'url'>,
  signal: AbortSignal,
): LoadRun {
  const results = new LoadResults();
  const call = <K extends Parameters<typeof callPod>[2]['name']>(
    name: K,
    argument: Parameters<typeof callPod<K>>[2]['argument'],
  ): ReturnType<typeof callPod<K>> => callPod(caller, pod, { name, argument }, signal);
  const started = call('load', { url, rate, timeout, duration }).then(({ load }) => load);
  const offset = clockOffset(caller, pod, signal);
  const follow = async (): Promise<readonly LoadResult[]> => {
    try {
      const load = await started;
      const ahead = await offset;
      for (let isFinished = false; !isFinished;) {
        const answer = await call('loaded', { load, from: results.count });
        results.add(answer.messages.map((one) => shifted(one, ahead)));
        isFinished = answer.isFinished && answer.messages.length === 0;
      }
      return results.inOrder();
    } catch (error) {
      throw asError(error);
    } finally {
      results.finish();
    }
  };
  const finished = follow();
  offset.catch(() => undefined); // `finished` rejects with it
  finished.catch(() => undefined); // callers that await it get the error
  const stop = async (): Promise<readonly LoadResult[]> => {
    await call('unload', { load: await started });
    return finished;
  };
  return {
    finished,
    pid: 0, // the load is not a process of this machine
    logFile: '',
    stop,
    [Symbol.asyncIterator]: () => results.read(finished),
    [Symbol.asyncDispose]: async () => {
      if (!results.isFinished && !signal.aborted) await stop().catch(() => undefined);
    },
  };
}

/** Number of calls; the shortest one is the most precise. */
const clockCalls = 3;

/** How far the clock of a pod's machine is ahead of this one's, in milliseconds. */
async function clockOffset(caller: Caller, pod: CalledPod, signal: AbortSignal): Promise<number> {
  const calls: { readonly took: number; readonly ahead: number }[] = [];
  while (calls.length < clockCalls) {
    const asked = systemClock.now();
    const { now } = await callPod(caller, pod, { name: 'clock', argument: {} }, signal);
    const took = systemClock.now() - asked;
    calls.push({ took, ahead: now - (asked + took / 2) });
  }
  return calls.toSorted((a, b) => a.took - b.took)[0]?.ahead ?? 0;
}

function shifted(result: LoadResult, ahead: number): LoadResult {
  const { scheduledAt, sentAt, doneAt } = result;
  const back = (time: number): Millis => millis(time - ahead);
  return { ...result, scheduledAt: back(scheduledAt), sentAt: back(sentAt), doneAt: back(doneAt) };
}
