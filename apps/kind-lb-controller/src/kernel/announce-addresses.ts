import { HostError } from '@switchyard/core';
import { type InterfaceOptions, newIpCommand } from './ip-command.ts';
import { newKernelSettings } from './kernel-settings.ts';

/**
 * Announces all addresses of the interface to the neighbours: gratuitous ARP, unsolicited neighbour advertisements. Neighbours with an
 * older entry switch at once.
 *
 * The kernel sends them when an interface gets a hardware address, if `arp_notify` and `ndisc_notify` are on; so it gets the one it
 * has. It then also resolves its own neighbours again. In a container these settings can only be given
 * at its start, for `all`. Rejects with `HostError` when they are off and cannot be changed.
 */
export async function announceAddresses(options: InterfaceOptions, signal: AbortSignal): Promise<void> {
  const { interfaceName, netns } = options;
  const settings = newKernelSettings(options.runner, netns);
  const families = [
    { family: 'ipv4', name: 'arp_notify' },
    { family: 'ipv6', name: 'ndisc_notify' },
  ];
  for (const { family, name } of families) {
    const pathOf = (which: string): string => `/proc/sys/net/${family}/conf/${which}/${name}`;
    const values = await Promise.all(['all', interfaceName].map((which) => settings.read(pathOf(which), signal)));
    // Without the family there are no neighbours.
    if (values.includes('1') || values.includes(undefined)) continue;
    await settings.write(pathOf(interfaceName), '1', signal);
  }
  const ip = newIpCommand(options);
  const attempt = `cannot announce the addresses of ${interfaceName}`;
  const link = await ip(['-o', 'link', 'show', 'dev', interfaceName], attempt, signal);
  const hardware = / link\/ether ([0-9a-f:]{17}) /.exec(link)?.[1];
  if (hardware === undefined) throw new HostError('lb.announce', `${attempt}: it is no Ethernet interface`);
  await ip(['link', 'set', 'dev', interfaceName, 'address', hardware], attempt, signal);
}
