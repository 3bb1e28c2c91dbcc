import { type Clock, HostError, type IpFamily, type Logger, type Millis } from '@switchyard/core';
import { createPacketCounters, type PacketCounters } from '@switchyard/netfilter';
import { type IptablesPrograms, type IptablesVariant, isVersionAtLeast } from '@switchyard/netfilter/iptables';
import { createIptablesClient, findPrograms, tryRules } from './client/create-client.ts';
import { detectVariant } from './client/detect-variant.ts';
import type { IptablesClient } from './client/iptables-client.ts';
import { parseRefusal } from './client/refusal.ts';
import { nfacctNames } from '../render/names.ts';
import type { CommandRunner } from '@switchyard/host';

export interface IptablesFacts {
  readonly variant: IptablesVariant;
  /** Such as `1.8.9`. */
  readonly version: string;
  /** `MASQUERADE --random-fully`. */
  readonly randomFully: boolean;
  /** Rules may name packet counters. Those in `nfacctNames` are there when `OpenedIptables.prepare` was called. */
  readonly nfacct: boolean;
}

export type FactsHost = Pick<IptablesHost, 'runner' | 'variant' | 'logger'> & {
  readonly [K in 'netns' | 'packetCounters']?: IptablesHost[K] | undefined;
};

export interface OpenedIptables {
  readonly client: IptablesClient;
  readonly facts: IptablesFacts;
  /** Makes the packet counters that rules name; existing ones stay. Throws `HostError`. */
  readonly prepare: () => void;
}

/** Opens iptables for one family; writes nothing. Rejects with `HostError` when iptables is not installed. */
export async function openIptables(host: FactsHost, ipFamily: IpFamily, signal: AbortSignal): Promise<OpenedIptables> {
  const { runner, logger } = host;
  // Both families use the same variant, even where one alone would suggest another.
  const { variant, reason = undefined } =
    host.variant === 'auto' ? await detectVariant(runner, ['IPv4', 'IPv6'], signal) : { variant: host.variant };
  const programs = await findPrograms({ runner, ipFamily, variant }, signal);
  const client = createIptablesClient({ runner, ...programs });
  const { netns, packetCounters = createPacketCounters({ netns }) } = host;
  const obstacle = await nfacctObstacle({ ...host, packetCounters }, programs, signal);
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
  const names = facts.nfacct ? Object.values(nfacctNames) : [];
  return { client, facts, prepare: () => names.forEach((name) => packetCounters.ensure(name)) };
}

/** Why nfacct cannot be used. Counters and the match are different modules, so both are tried. */
async function nfacctObstacle(
  { runner, packetCounters }: FactsHost & { readonly packetCounters: PacketCounters },
  programs: IptablesPrograms,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    packetCounters.read();
  } catch (error) {
    if (error instanceof HostError) return error.message;
    throw error;
  }
  const { stderr } = await tryRules(runner, programs, trial, signal);
  const { said, advice } = parseRefusal(stderr);
  return /^Warning: Extension nfacct |Couldn't load match/m.test(stderr)
    ? [said, advice].filter((text) => text !== '').join('; ')
    : undefined;
}

const chain = 'SWITCHYARD-PROBE';
const trial = `*filter\n:${chain} - [0:0]\n-A ${chain} -m nfacct --nfacct-name ${nfacctNames.invalidDropped}\nCOMMIT\n`;

/** The machine as this backend uses it. */
export interface IptablesHost {
  /** Runs `iptables-restore` and its relatives, in the network namespace to be programmed. */
  readonly runner: CommandRunner;
  readonly logger: Logger;
  /** Which of the kernel's two iptables is programmed. `auto`: the one in use, detected by the kubelet's hint chains. */
  readonly variant: IptablesVariant | 'auto';
  /** `iptables.masqueradeBit`, 0 to 31. */
  readonly masqueradeBit: number;
  readonly localhostNodePorts: boolean;
  /** conntrack is liberal about TCP windows (`conntrack.tcpBeLiberal`, or the kernel's setting): INVALID is not dropped. */
  readonly tcpBeLiberal: boolean;
  /** How often legacy rules are read to notice foreign changes, and stale chains of large clusters removed. */
  readonly syncPeriod: Millis;
  /** Path of the network namespace whose nftables events are watched; default: the process's own. `runner` must run in the same. */
  readonly netns?: string | undefined;
  /** Counters of netfilter accounting; default: the kernel's, by netlink, in `netns`. Fakes have their own. */
  readonly packetCounters?: PacketCounters;
  /** Default: the machine's. */
  readonly clock?: Clock;
}
