import { asError, millis } from '@switchyard/core';
import { type LoadOptions, type LoadResult, LoadResults, type LoadRun } from '@switchyard/lab';
import { callPod, type CalledPod, type Caller } from './traffic-caller.ts';

interface RemoteLoadPlace {
  readonly caller: Caller;
  readonly pod: CalledPod;
  readonly url: string;
}

const defaultRate = 20;
const defaultTimeout = millis(500);

/** An open loop in a pod, which starts at once. Times of its results are of the pod's machine. */
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
  const follow = async (): Promise<readonly LoadResult[]> => {
    try {
      const load = await started;
      for (let isFinished = false; !isFinished;) {
        const answer = await call('loaded', { load, from: results.count });
        results.add(answer.messages);
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
