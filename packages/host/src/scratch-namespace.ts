import { isProgramMissing, isTimedOut } from './command-error.ts';
import type { CommandOptions, CommandResult, CommandRunner } from './command-runner.ts';

/**
 * Runs a program in a temporary network namespace that ends with it, so that the rules it loads affect no other traffic.
 * Returns undefined if `unshare` or CAP_SYS_ADMIN is missing, or on time-out: the kernel creates no namespace while it
 * removes others, one per pod that ended on the node.
 */
export async function runInScratchNamespace(
  runner: CommandRunner,
  line: readonly string[],
  options: CommandOptions,
): Promise<CommandResult | undefined> {
  try {
    const result = await runner.run('unshare', ['--net', ...line], options);
    return result.exitCode !== 0 && result.stderr.includes('unshare') ? undefined : result;
  } catch (error) {
    options.signal.throwIfAborted();
    if (isProgramMissing(error) || isTimedOut(error)) return undefined;
    throw error;
  }
}
