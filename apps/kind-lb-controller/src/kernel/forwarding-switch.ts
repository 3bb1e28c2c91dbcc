import { HostError, type IpFamily } from '@switchyard/core';
import type { CommandRunner } from '@switchyard/host';
import { readSetting, writeSetting } from './kernel-settings.ts';

/** The kernel's switch for routing packets of others, by family. */
const switches: Readonly<Record<IpFamily, string>> = {
  IPv4: '/proc/sys/net/ipv4/ip_forward',
  IPv6: '/proc/sys/net/ipv6/conf/all/forwarding',
};

/**
 * Makes sure that the namespace `runner` runs in forwards: what is translated for a target would be dropped otherwise, without a word.
 * Rejects with `HostError` when it does not and `mode` is `check`.
 */
export async function ensureForwarding(
  runner: CommandRunner,
  { ipFamily, mode }: { readonly ipFamily: IpFamily; readonly mode: 'set' | 'check' },
  signal: AbortSignal,
): Promise<void> {
  const path = switches[ipFamily];
  if ((await readSetting(runner, path, signal)) === '1') return;
  if (mode === 'set') return writeSetting(runner, { path, value: '1' }, signal);
  const setting = path.slice('/proc/sys/'.length).replaceAll('/', '.');
  const next = `start the container with --sysctl ${setting}=1`;
  throw new HostError('lb.forwarding', `UDP and SCTP over ${ipFamily} need ${setting}, which is off; ${next}`);
}
