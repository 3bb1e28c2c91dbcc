import { wrongArgument } from './argument.ts';

/**
 * Settles as `work` does, or rejects with `signal.reason` if that comes first; `work` then continues and its result is ignored.
 * Rejects with `UsageError` without a promise or a signal.
 */
export async function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  if (typeof work?.catch !== 'function') throw wrongArgument('abortable: work', 'a promise', work);
  if (!(signal instanceof AbortSignal)) throw wrongArgument('abortable: signal', 'an AbortSignal', signal);
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
