import { readdir, stat } from 'node:fs/promises';
import {
  type Cidr,
  cidrContains,
  ConfigError,
  type IpAddress,
  ipFamilyOf,
  seconds,
  tryParseIp,
} from '@switchyard/core';
import { commandFailed, type CommandResult, type CommandRunner } from '@switchyard/host';

/** Whose addresses we manage. */
export interface InterfaceAddressesOptions {
  readonly runner: CommandRunner;
  readonly interfaceName: string;
  /** Name under /run/netns; undefined: our own namespace. */
  readonly netns: string | undefined;
  /** Only addresses in these are ever added or removed: that is how we recognise our own. */
  readonly pool: readonly Cidr[];
}

/** Pool addresses on the load-balancer host's interface. */
export interface InterfaceAddresses {
  /** Adds what is missing. Adding what is there is success. */
  add(addresses: readonly IpAddress[], signal: AbortSignal): Promise<void>;
  /** Removes pool addresses other than `wanted`, also those that an earlier controller added. */
  removeOthers(wanted: readonly IpAddress[], signal: AbortSignal): Promise<void>;
}

const limit = seconds(10);

/** Manages addresses by the `ip` command. */
export function newInterfaceAddresses(options: InterfaceAddressesOptions): InterfaceAddresses {
  const { runner, interfaceName, netns, pool } = options;
  const run = async (args: readonly string[], attempt: string, signal: AbortSignal): Promise<CommandResult> => {
    const all = [...(netns === undefined ? [] : ['-n', netns]), ...args];
    const result = await runner.run('ip', all, { timeout: limit, signal });
    if (result.exitCode !== 0) throw commandFailed(attempt, { file: 'ip', args: all }, result);
    return result;
  };
  const present = async (signal: AbortSignal): Promise<readonly IpAddress[]> => {
    const attempt = `cannot list the addresses of ${interfaceName}`;
    const { stdout } = await run(['-o', 'addr', 'show', 'dev', interfaceName], attempt, signal);
    return [...stdout.matchAll(/ inet6? ([0-9a-f.:]+)\/(?:32|128) /g)]
      .flatMap(([, text = '']) => tryParseIp(text) ?? [])
      .filter((ip) => pool.some((cidr) => cidrContains(cidr, ip)));
  };
  const change = (verb: 'add' | 'del', ip: IpAddress, signal: AbortSignal): Promise<CommandResult> => {
    const isIpv4 = ipFamilyOf(ip) === 'IPv4';
    // Duplicate address detection would keep HAProxy from binding for a second; and a preferred address
    // would become the source of HAProxy's own connections.
    const flags = verb === 'add' && !isIpv4 ? ['nodad', 'preferred_lft', '0'] : [];
    const args = ['addr', verb, `${ip}/${isIpv4 ? 32 : 128}`, 'dev', interfaceName, ...flags];
    return run(args, `cannot ${verb === 'add' ? 'add' : 'remove'} ${ip} on ${interfaceName}`, signal);
  };
  return {
    async add(addresses, signal) {
      const there = await present(signal);
      for (const ip of addresses.filter((one) => !there.includes(one))) await change('add', ip, signal);
    },
    async removeOthers(wanted, signal) {
      for (const ip of (await present(signal)).filter((one) => !wanted.includes(one))) await change('del', ip, signal);
    },
  };
}

/**
 * Throws `ConfigError` unless the namespace (undefined: our own) is a named one in /run/netns and not the machine's:
 * the machine's addresses are not ours to change.
 */
export async function assertNotMachines(netns: string | undefined): Promise<void> {
  const chosen = await inodeOf(netns === undefined ? '/proc/self/ns/net' : `${namespacesFolder}/${netns}`);
  const machines = await inodeOf('/proc/1/ns/net'); // undefined where we may not look at process 1
  if (chosen !== undefined && chosen !== machines && (await namedInodes()).has(chosen)) return;
  throw new ConfigError(
    'lb.namespace',
    "--interface would change the machine's own addresses; run inside a namespace made by 'ip netns add', or name one with --netns",
  );
}

const namespacesFolder = '/run/netns';

async function namedInodes(): Promise<ReadonlySet<number | undefined>> {
  const names = await readdir(namespacesFolder).catch(() => []); // nobody has made one yet
  return new Set(await Promise.all(names.map((name) => inodeOf(`${namespacesFolder}/${name}`))));
}

async function inodeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).ino;
  } catch {
    return undefined; // gone, or not for us to see
  }
}
