import { HostError, type IpFamily } from '@switchyard/core';
import { type IptablesVariant, isVersionAtLeast } from '@switchyard/host';
import { createPacketCounters, type PacketCounters } from '@switchyard/native';
import { openIptablesClient } from './client/create-client.ts';
import { detectVariant } from './client/detect-variant.ts';
import type { IptablesClient } from './client/iptables-client.ts';
import type { IptablesHost } from './host.ts';
import { nfacctNames } from './names.ts';

/** What rules may use on this machine. */
export interface IptablesFacts {
  readonly variant: IptablesVariant;
  /** Such as `1.8.9`. */
  readonly version: string;
  /** `MASQUERADE --random-fully`. */
  readonly randomFully: boolean;
  /** The counters in `nfacctNames` are there, and rules may name them. */
  readonly nfacct: boolean;
}

/** What is needed of the host to find the facts. */
export type FactsHost = Pick<IptablesHost, 'runner' | 'variant' | 'netns' | 'logger'> & {
  /** For tests and fakes; default: the kernel's, by netlink, in `netns`. */
  readonly packetCounters?: PacketCounters;
};

/** A client, and what rules that it writes may use. */
export interface OpenedIptables {
  readonly client: IptablesClient;
  readonly facts: IptablesFacts;
}

/**
 * Opens iptables for one family. Makes the packet counters where the kernel has them, as kube-proxy does, and tries a rule with
 * one in a chain that nothing leads to and that is removed at once. Rejects with `HostError` when iptables is not installed.
 */
export async function openIptables(host: FactsHost, ipFamily: IpFamily, signal: AbortSignal): Promise<OpenedIptables> {
  const { runner, logger } = host;
  // Both families use the same variant, whatever one alone would tell.
  const { variant, reason = undefined } =
    host.variant === 'auto' ? await detectVariant(runner, ['IPv4', 'IPv6'], signal) : { variant: host.variant };
  const client = await openIptablesClient({ runner, ipFamily, variant }, signal);
  const obstacle = await nfacctObstacle(host, client, signal);
  const facts: IptablesFacts = {
    variant,
    version: client.version,
    randomFully: isVersionAtLeast(client.version, '1.6.2'),
    nfacct: obstacle === undefined,
  };
  logger.info('iptables opened', {
    ipFamily,
    ...facts,
    ...(reason === undefined ? {} : { variantBecause: reason }),
    ...(obstacle === undefined ? {} : { nfacctMissing: obstacle }),
  });
  return { client, facts };
}

/** Why counters of netfilter accounting cannot be used; undefined when they can. */
async function nfacctObstacle(
  { netns, packetCounters }: FactsHost,
  client: IptablesClient,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const counters = packetCounters ?? createPacketCounters(netns === undefined ? {} : { netns });
    for (const name of Object.values(nfacctNames)) counters.ensure(name);
  } catch (error) {
    if (error instanceof HostError) return error.message;
    throw error;
  }
  // The counters and the match are different modules of the kernel.
  const result = await client.restore(trial, signal);
  return result.status === 'done' ? undefined : result.error.message;
}

const chain = 'SWITCHYARD-PROBE';
/** Two transactions of one process: where the first is refused nothing is there, and no crash of ours leaves the chain. */
const trial = [
  `*filter\n:${chain} - [0:0]\n-A ${chain} -m nfacct --nfacct-name ${nfacctNames.invalidDropped}\nCOMMIT\n`,
  `*filter\n:${chain} - [0:0]\n-X ${chain}\nCOMMIT\n`,
].join('');
