import {
  type Cidr,
  cidrContains,
  type IpAddress,
  ipFamilyOf,
  type Logger,
  messageOf,
  noopLogger,
  tryParseIp,
} from '@switchyard/core';
import { announceAddresses } from './announce-addresses.ts';
import { type InterfaceOptions, newIpCommand } from './ip-command.ts';

/** Interface and pool of managed addresses. */
export interface InterfaceAddressesOptions extends InterfaceOptions {
  /**
   * How we recognise our own: only these are ever removed. `everyHostAddress`: all of one address' length, /32 and /128, which
   * container engines never give.
   */
  readonly pool: readonly Cidr[] | 'everyHostAddress';
  /** Receives a warning when an announcement to neighbours fails. Default: none. */
  readonly logger?: Logger;
}

/** Pool addresses on the load-balancer host's interface. */
export interface InterfaceAddresses {
  /**
   * Adds missing addresses and announces them: neighbours may know an address of an earlier load balancer at another
   * hardware address. Adding what is there is success.
   */
  add(addresses: readonly IpAddress[], signal: AbortSignal): Promise<void>;
  /** Removes our addresses other than `wanted`, also those that an earlier controller added. */
  removeOthers(wanted: readonly IpAddress[], signal: AbortSignal): Promise<void>;
}

/** Manages addresses by the `ip` command. */
export function newInterfaceAddresses(options: InterfaceAddressesOptions): InterfaceAddresses {
  const { interfaceName, pool, logger = noopLogger } = options;
  const ip = newIpCommand(options);
  const present = async (signal: AbortSignal): Promise<readonly IpAddress[]> => {
    const attempt = `cannot list the addresses of ${interfaceName}`;
    const text = await ip(['-o', 'addr', 'show', 'dev', interfaceName, 'scope', 'global'], attempt, signal);
    return [...text.matchAll(/ inet6? ([0-9a-f.:]+)\/(?:32|128) /g)]
      .flatMap(([, found = '']) => tryParseIp(found) ?? [])
      .filter((address) => pool === 'everyHostAddress' || pool.some((cidr) => cidrContains(cidr, address)));
  };
  const change = async (verb: 'add' | 'del', address: IpAddress, signal: AbortSignal): Promise<void> => {
    const isIpv4 = ipFamilyOf(address) === 'IPv4';
    // Duplicate address detection would keep HAProxy from binding for a second; and a preferred address
    // would become the source of HAProxy's own connections.
    const flags = verb === 'add' && !isIpv4 ? ['nodad', 'preferred_lft', '0'] : [];
    const args = ['addr', verb, `${address}/${isIpv4 ? 32 : 128}`, 'dev', interfaceName, ...flags];
    await ip(args, `cannot ${verb === 'add' ? 'add' : 'remove'} ${address} on ${interfaceName}`, signal);
  };
  return {
    async add(addresses, signal) {
      const there = await present(signal);
      const missing = addresses.filter((address) => !there.includes(address));
      for (const address of missing) await change('add', address, signal);
      if (missing.length === 0) return;
      try {
        await announceAddresses(options, signal);
      } catch (error) {
        signal.throwIfAborted();
        const next = 'they notice by themselves within a minute';
        logger.warn('neighbours are not told of new addresses', { interfaceName, reason: messageOf(error), next });
      }
    },
    async removeOthers(wanted, signal) {
      for (const address of (await present(signal)).filter((one) => !wanted.includes(one))) {
        await change('del', address, signal);
      }
    },
  };
}
