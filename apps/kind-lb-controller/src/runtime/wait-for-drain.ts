import { type Clock, type IpAddress, millis, seconds } from '@switchyard/core';
import { commandFailed, type CommandRunner } from '@switchyard/host';

/**
 * Maximum time for established connections to a removed load balancer. The same time as `docker stop` gives a
 * container, and less than a client would wait for the answer to its request.
 */
const drainLimit = seconds(10);

/** Where to look for connections. */
export interface DrainOptions {
  readonly runner: CommandRunner;
  /** Name under /run/netns; undefined: our own. */
  readonly netns: string | undefined;
  readonly clock: Clock;
}

const pollInterval = millis(200);

/** Waits until no TCP connection to these addresses is left, at most `drainLimit`. */
export async function waitForDrain(
  addresses: readonly IpAddress[],
  options: DrainOptions,
  signal: AbortSignal,
): Promise<void> {
  const deadline = options.clock.monotonic() + drainLimit;
  while (addresses.length > 0 && (await hasConnections(addresses, options, signal))) {
    if (options.clock.monotonic() >= deadline) return;
    await options.clock.sleep(pollInterval, signal);
  }
}

async function hasConnections(
  addresses: readonly IpAddress[],
  { runner, netns }: DrainOptions,
  signal: AbortSignal,
): Promise<boolean> {
  const filter = addresses.flatMap((address, index) => [...(index === 0 ? [] : ['or']), 'src', address]);
  const args = [...(netns === undefined ? [] : ['-N', netns]), '-Htn', 'state', 'established', '(', ...filter, ')'];
  const result = await runner.run('ss', args, { timeout: seconds(5), signal });
  if (result.exitCode !== 0) throw commandFailed('cannot list connections', { file: 'ss', args }, result);
  return result.stdout.trim() !== '';
}
