import { type Millis, seconds } from '@switchyard/core';
import { type CommandResult, type CommandRunner, runInScratchNamespace } from '@switchyard/host';
import type { IptablesPrograms } from '@switchyard/netfilter/iptables';

/** Time limit of one trial. */
export const trialTimeout: Millis = seconds(30);

/**
 * Loads rules into a network namespace that ends with the command, where they affect no traffic. Where no namespace can be made,
 * iptables only parses them (`--test`), and the kernel checks only the extensions.
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
