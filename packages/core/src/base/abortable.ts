import {
  requireList,
  requireSignal,
  wrongArgument,
  objectArgument,
  requireFunction,
  requireMethods,
} from './argument.ts';
import { type Clock, type Millis, millis } from './time.ts';

/**
 * Settles as `work` does, or rejects with `signal.reason` if that comes first; `work` then continues and its result is ignored.
 * Rejects with `UsageError` without a promise or a signal.
 */
export async function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  if (typeof work?.catch !== 'function') throw wrongArgument('abortable: work', 'a promise', work);
  requireSignal('abortable: signal', signal);
  work.catch(() => undefined);
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason as Error);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** Resolves when the signal aborts; at once when it has. Throws `UsageError` for what is no signal. */
export function aborted(signal: AbortSignal): Promise<void> {
  requireSignal('aborted: signal', signal);
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/**
 * Runs tasks that last until they are aborted. When one fails, aborts and awaits the others, and rejects with its error.
 * Resolves when `signal` aborts and all tasks have ended. Rejects with `UsageError` without a list or a signal.
 */
export async function runTogether(
  tasks: readonly ((signal: AbortSignal) => Promise<void> | undefined)[],
  signal: AbortSignal,
): Promise<void> {
  requireList('runTogether: tasks', tasks);
  requireSignal('runTogether: signal', signal);
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  let failure: { readonly error: unknown } | undefined;
  const run = async (task: (typeof tasks)[number]): Promise<void> => {
    try {
      await task(either);
    } catch (error) {
      failure ??= { error }; // later ones come from the abort
      stop.abort();
    }
  };
  await Promise.all(tasks.map(run));
  if (failure !== undefined && !signal.aborted) throw failure.error;
}

/** Sleeps, until aborted at the latest; an abort is no error. */
export async function sleepUnlessAborted(
  clock: Pick<Clock, 'sleep'>,
  duration: Millis,
  signal: AbortSignal,
): Promise<void> {
  await clock.sleep(duration, signal).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

/** Waits for `event`, for `limit` at most (`Infinity`: no limit), and leaves no timer behind. Resolves when aborted, too. */
export async function waitFor(
  event: Promise<unknown>,
  { clock, limit }: { readonly clock: Pick<Clock, 'sleep'>; readonly limit: number },
  signal: AbortSignal,
): Promise<void> {
  const enough = new AbortController();
  const stop = AbortSignal.any([signal, enough.signal]);
  const timer = limit === Infinity ? aborted(stop) : clock.sleep(millis(limit), stop).catch(() => undefined);
  await Promise.race([event, timer]);
  enough.abort();
  await timer;
}

/**
 * Calls `use` with a signal that aborts after `limit` as well, with `late()` as the reason. Rejects with `UsageError` for arguments
 * of other types.
 */
export async function within<T>(
  options: { readonly clock: Pick<Clock, 'sleep'>; readonly limit: Millis; readonly late: () => Error },
  use: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  requireMethods('within: options.clock', objectArgument('within: options', options)['clock'], ['sleep']);
  requireFunction('within: use', use);
  requireSignal('within: signal', signal);
  const { clock, limit, late } = options;
  const over = new AbortController();
  const enough = new AbortController();
  const timer = clock.sleep(limit, AbortSignal.any([signal, enough.signal])).then(
    () => over.abort(late()),
    () => undefined,
  );
  try {
    return await use(AbortSignal.any([signal, over.signal]));
  } finally {
    enough.abort();
    await timer;
  }
}
