import { HostError, type IpFamily } from '@switchyard/core';
import type { KernelSettings } from './kernel-settings.ts';

/** The kernel's switch for routing packets of others, by family. */
const switches: Readonly<Record<IpFamily, string>> = {
  IPv4: '/proc/sys/net/ipv4/ip_forward',
  IPv6: '/proc/sys/net/ipv6/conf/all/forwarding',
};

/** Forwarding required of a namespace. */
export interface ForwardingOptions {
  readonly ipFamily: IpFamily;
  /** As `KernelForwarderOptions.forwarding`. */
  readonly mode: 'set' | 'check';
  readonly interfaceName: string;
}

/**
 * Makes sure that the namespace forwards: what is translated for a target would be dropped otherwise, without a word.
 * Rejects with `HostError` when it does not and `mode` is `check`.
 */
export async function ensureForwarding(
  settings: KernelSettings,
  { ipFamily, mode, interfaceName }: ForwardingOptions,
  signal: AbortSignal,
): Promise<void> {
  const path = switches[ipFamily];
  const set = async (name: string, value: string): Promise<void> => {
    if ((await settings.read(name, signal)) !== value) await settings.write(name, value, signal);
  };
  if (mode === 'set') {
    await set(path, '1');
    if (ipFamily === 'IPv6') return;
    // Packets leave by the interface on which they arrived: ICMP redirects would send clients past the load balancer.
    for (const which of ['all', interfaceName]) await set(`/proc/sys/net/ipv4/conf/${which}/send_redirects`, '0');
    return;
  }
  if ((await settings.read(path, signal)) === '1') return;
  const setting = path.slice('/proc/sys/'.length).replaceAll('/', '.');
  const next = `start the container with --sysctl ${setting}=1`;
  throw new HostError('lb.forwarding', `UDP and SCTP over ${ipFamily} need ${setting}, which is off; ${next}`);
}
