import { seconds } from '@switchyard/core';
import { commandFailed, type CommandRunner } from '@switchyard/host';

const limit = seconds(5);

/**
 * Reads a file below /proc/sys/net, which shows the settings of the namespace that the reading program runs in. Undefined: there is
 * none, as without IPv6. Rejects with `CommandError`.
 */
export async function readSetting(
  runner: CommandRunner,
  path: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const result = await runner.run('cat', [path], { timeout: limit, signal });
  if (result.exitCode === 0) return result.stdout.trim();
  if (result.stderr.includes('No such file or directory')) return undefined;
  throw commandFailed(`cannot read ${path}`, { file: 'cat', args: [path] }, result);
}

/** Writes one. Rejects with `CommandError`, as in containers, where /proc/sys is read-only. */
export async function writeSetting(
  runner: CommandRunner,
  { path, value }: { readonly path: string; readonly value: string },
  signal: AbortSignal,
): Promise<void> {
  const result = await runner.run('tee', [path], { stdin: value, timeout: limit, signal });
  if (result.exitCode !== 0)
    throw commandFailed(`cannot write ${value} to ${path}`, { file: 'tee', args: [path] }, result);
}
