import { isProgramMissing, isTimedOut } from './command-error.ts';
import type { CommandOptions, CommandResult, CommandRunner } from './command-runner.ts';

/**
 * Runs a program in a network namespace of its own that ends with it, so that what it loads into the kernel hurts nobody.
 * Undefined where that cannot be: unshare is missing, CAP_SYS_ADMIN is, or it was not done within the time-out. The kernel makes
 * no namespace while it takes others down, which are as many as pods that ended on the node.
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
