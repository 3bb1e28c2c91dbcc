import { requireList, requireSignal } from './argument.ts';

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
