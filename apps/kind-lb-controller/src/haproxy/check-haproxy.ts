import { ConfigError, seconds } from '@switchyard/core';
import { CommandError, type CommandRunner } from '@switchyard/host';

/** The first version with the master and `server state` behaviour this controller builds on. */
const oldest: readonly [number, number] = [2, 6];

/**
 * Rejects with `ConfigError` unless `program` is an HAProxy that is new enough. Asked once at the start: what is not
 * installed then will not be there by itself later.
 */
export async function checkHaproxy(program: string, runner: CommandRunner, signal: AbortSignal): Promise<void> {
  const found = await versionText(program, runner, signal);
  const match = /^HA-?Proxy version (\d+)\.(\d+)/m.exec(found);
  if (match === null) {
    throw new ConfigError(
      'lb.haproxy',
      `--haproxy ${program}: it is not HAProxy: ${JSON.stringify(found.slice(0, 80))}`,
    );
  }
  const [major, minor] = [Number(match[1]), Number(match[2])];
  if (major > oldest[0] || (major === oldest[0] && minor >= oldest[1])) return;
  throw new ConfigError('lb.haproxy', `HAProxy ${major}.${minor} is too old: ${oldest.join('.')} or newer is needed`);
}

async function versionText(program: string, runner: CommandRunner, signal: AbortSignal): Promise<string> {
  try {
    return (await runner.run(program, ['-v'], { timeout: seconds(10), signal })).stdout;
  } catch (cause) {
    if (!(cause instanceof CommandError)) throw cause;
    throw new ConfigError('lb.haproxy', `${cause.message} (the package haproxy, or give --haproxy)`, { cause });
  }
}
