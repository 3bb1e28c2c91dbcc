import { HostError, millis, type Millis, systemClock } from '@switchyard/core';
import type { LabProcess } from '@switchyard/lab';

/**
 * Polls until `probe` returns something, and returns that. Rejects after `timeout`, saying what was waited for, or at
 * once when one of `programs` has ended meanwhile, naming its log.
 */
export async function awaitCondition<T>(
  what: string,
  probe: () => Promise<T | undefined>,
  options: { readonly timeout: Millis; readonly programs: readonly LabProcess[]; readonly signal: AbortSignal },
): Promise<T> {
  const end = systemClock.monotonic() + options.timeout;
  let ended: LabProcess | undefined;
  for (const program of options.programs) void program.ended.then(() => (ended = program));
  for (;;) {
    const found = await probe();
    if (found !== undefined) return found;
    if (ended !== undefined) {
      throw new HostError(
        'rollout.ended',
        `waiting for ${what}: a program of the experiment has ended (${String(await ended.ended)}); its log: ${ended.logFile}`,
      );
    }
    if (systemClock.monotonic() > end) {
      const logs = options.programs.map((program) => program.logFile).join(', ');
      throw new HostError('rollout.timeout', `waited ${options.timeout / 1000} s for ${what} in vain; logs: ${logs}`);
    }
    await systemClock.sleep(millis(50), options.signal);
  }
}
