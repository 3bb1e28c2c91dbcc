import { HostError } from '@switchyard/core';
import type { LabHost } from '../lab.ts';

/** Configuration of a lab host's `eth0` in the syntax of `ip`. */
export interface HostLink {
  readonly hardwareAddress: string;
  /** With prefix length, such as `172.18.0.50/24`; without link-local ones, which the kernel adds. */
  readonly addresses: readonly string[];
  /** Arguments of `ip route add` without the device; without the routes that addresses imply. */
  readonly routes: readonly string[];
}

/** Bridge that takes over a host's addresses and routes. */
export interface BridgePlan {
  readonly bridge: string;
  /** Prefix length that IPv4 addresses get there. */
  readonly ipv4Length: number;
  /** An address that Docker gave the bridge and that another host has. */
  readonly surplus: string | undefined;
}

const device = 'eth0';

interface ShownLink {
  readonly address: string;
  readonly addr_info: readonly { readonly local: string; readonly prefixlen: number; readonly scope: string }[];
}

interface ShownRoute {
  readonly type?: string;
  readonly dst: string;
  readonly gateway?: string;
  readonly protocol?: string;
}

/** Reads the configuration of a lab host's `eth0`. */
export async function readLink(host: LabHost): Promise<HostLink> {
  const [link] = await show<ShownLink>(host, ['address', 'show', 'dev', device]);
  if (link === undefined) throw new HostError('docker.network', `host ${host.name} has no ${device}`);
  const routes = [
    ...(await show<ShownRoute>(host, ['-4', 'route', 'show', 'dev', device])),
    ...(await show<ShownRoute>(host, ['-6', 'route', 'show', 'dev', device])),
  ];
  return {
    hardwareAddress: link.address,
    addresses: link.addr_info
      .filter(({ scope }) => scope === 'global')
      .map(({ local, prefixlen }) => `${local}/${prefixlen}`),
    routes: routes
      .filter(({ protocol }) => protocol !== 'kernel')
      .map(({ dst, gateway }) => (gateway === undefined ? dst : `${dst} via ${gateway}`)),
  };
}

/**
 * Switches forwarding of IPv4 between a host's links, without which Docker warns at every start of a container. Packets from
 * `blocked.from` to `blocked.to` are then answered "unreachable", because a machine with kind has no route to pods.
 */
export async function setForwarding(
  host: LabHost,
  isOn: boolean,
  blocked: { readonly from: string; readonly to: string } | undefined,
): Promise<void> {
  const file = '/proc/sys/net/ipv4/ip_forward';
  const { exitCode, stderr } = await host.run('sh', ['-c', `echo ${isOn ? 1 : 0} >${file}`]);
  if (exitCode !== 0) throw new HostError('docker.network', `cannot write ${file} of ${host.name}: ${stderr.trim()}`);
  if (blocked === undefined) return;
  const action = isOn ? 'add' : 'delete';
  await change(host, [`rule ${action} pref 100 iif ${blocked.from} to ${blocked.to} unreachable`]);
}

/** Removes the addresses and thus the routes of `eth0`, so that Docker finds their network unused. */
export async function freeLink(host: LabHost, link: HostLink): Promise<void> {
  await change(
    host,
    link.addresses.map((address) => `address delete ${address} dev ${device}`),
  );
}

/**
 * Makes `eth0` a port of a bridge that takes over its addresses and routes; its hardware address too, so that the
 * neighbours' ARP entries stay valid.
 */
export async function moveToBridge(host: LabHost, link: HostLink, plan: BridgePlan): Promise<void> {
  const { bridge, ipv4Length, surplus } = plan;
  const widened = link.addresses.map((address) => address.replace(/^([\d.]+)\/\d+$/, `$1/${ipv4Length}`));
  await change(host, [
    `link set dev ${device} master ${bridge}`,
    `link set dev ${bridge} address ${link.hardwareAddress} up`,
    ...(surplus === undefined ? [] : [`address delete ${surplus} dev ${bridge}`]),
    ...widened.map((address) => `address replace ${address} dev ${bridge}${address.includes(':') ? ' nodad' : ''}`),
    ...link.routes.map((route) => `route replace ${route} dev ${bridge}`),
  ]);
}

/** Undoes `moveToBridge`. The bridge may be missing. */
export async function restoreLink(host: LabHost, link: HostLink): Promise<void> {
  await change(host, [
    `link set dev ${device} nomaster up`,
    ...link.addresses.map(
      (address) => `address replace ${address} dev ${device}${address.includes(':') ? ' nodad' : ''}`,
    ),
    ...link.routes.map((route) => `route replace ${route} dev ${device}`),
  ]);
}

async function show<T>(host: LabHost, args: readonly string[]): Promise<readonly T[]> {
  const { exitCode, stdout, stderr } = await host.run('ip', ['-json', ...args]);
  if (exitCode === 0) return JSON.parse(stdout === '' ? '[]' : stdout) as readonly T[];
  throw new HostError(
    'docker.network',
    `cannot read the link of ${host.name} with ip ${args.join(' ')}: ${stderr.trim()}`,
  );
}

async function change(host: LabHost, lines: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await host.run('ip', ['-batch', '-'], { stdin: `${lines.join('\n')}\n` });
  if (exitCode === 0) return;
  throw new HostError('docker.network', `cannot change the link of ${host.name}: ${stderr.trim()}`);
}
