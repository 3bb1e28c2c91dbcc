import { asError, type Millis, millis, systemClock } from '@switchyard/core';
import { type LoadOptions, type LoadResult, LoadResults, type LoadRun } from '@switchyard/lab';
import type { CallSender } from './traffic-caller.ts';

const defaultRate = 20;
const defaultTimeout = millis(500);

/** An open loop of a sender, which starts at once. Times of its results are of this machine's clock. */
export function startRemoteLoad(
  call: CallSender,
  { url, rate = defaultRate, timeout = defaultTimeout, duration }: LoadOptions,
  signal: AbortSignal,
): LoadRun {
  const results = new LoadResults();
  const started = call('load', { url, rate, timeout, duration }, signal).then(({ load }) => load);
  const offset = clockOffset(call, signal);
  const follow = async (): Promise<readonly LoadResult[]> => {
    try {
      const load = await started;
      const ahead = await offset;
      for (let isFinished = false; !isFinished;) {
        const answer = await call('loaded', { load, from: results.count }, signal);
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
    await call('unload', { load: await started }, signal);
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

/** How far the clock of the sender's machine is ahead of this one's, in milliseconds. */
async function clockOffset(call: CallSender, signal: AbortSignal): Promise<number> {
  const calls: { readonly took: number; readonly ahead: number }[] = [];
  while (calls.length < clockCalls) {
    const asked = systemClock.now();
    const { now } = await call('clock', {}, signal);
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
