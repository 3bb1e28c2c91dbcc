import { type Millis, seconds } from '@switchyard/core';
import { type CommandResult, type CommandRunner, runInScratchNamespace } from '@switchyard/host';
import type { IptablesPrograms } from '@switchyard/netfilter/iptables';

/** For one trial. */
export const trialTimeout: Millis = seconds(30);

/**
 * Loads rules where they hurt nobody: into a network namespace that ends with the command. Where none can be made, iptables only
 * reads them; then the kernel is asked no more than for the extensions.
 */
export async function tryRules(
  runner: CommandRunner,
  { command }: IptablesPrograms,
  stdin: string,
  signal: AbortSignal,
): Promise<CommandResult> {
  const options = { stdin, timeout: trialTimeout, signal };
  const file = `${command}-restore`;
  const args = ['--noflush', '-w', '5'];
  return (
    (await runInScratchNamespace(runner, [file, ...args], options)) ??
    (await runner.run(file, [...args, '--test'], options))
  );
}
