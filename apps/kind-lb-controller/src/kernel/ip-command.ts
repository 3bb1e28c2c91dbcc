import { seconds } from '@switchyard/core';
import { commandFailed, type CommandRunner } from '@switchyard/host';

/** Where `ip` works. */
export interface IpCommandOptions {
  readonly runner: CommandRunner;
  /** Name under /run/netns; undefined: our own namespace. */
  readonly netns: string | undefined;
}

/** One interface there. */
export interface InterfaceOptions extends IpCommandOptions {
  readonly interfaceName: string;
}

/** Runs `ip` and returns what it prints; `attempt` begins the message when it fails. Rejects with `CommandError`. */
export type IpCommand = (args: readonly string[], attempt: string, signal: AbortSignal) => Promise<string>;

const limit = seconds(10);

/** `ip` in a namespace. */
export function newIpCommand({ runner, netns }: IpCommandOptions): IpCommand {
  return async (args, attempt, signal) => {
    const all = [...(netns === undefined ? [] : ['-n', netns]), ...args];
    const result = await runner.run('ip', all, { timeout: limit, signal });
    if (result.exitCode !== 0) throw commandFailed(attempt, { file: 'ip', args: all }, result);
    return result.stdout;
  };
}
