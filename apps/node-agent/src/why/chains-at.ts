import { type Clock, HostError, type IpFamily, type Millis, millis } from '@switchyard/core';
import type { PacketPlace } from '@switchyard/drops';
import { listBaseChains, type BaseChain } from '@switchyard/netfilter';

/** Names of tables of Service proxies. */
const proxyTables = /^(?:switchyard|kube-proxy)/;
/** A list is read again after this multiple of its CPU time: mostly a millisecond, but 0.1 s with 40,000 chains. */
const pauseFactor = 20;

/** Chains of other programs that see packets of a family at a hook, such as `inet filter forward`; legacy iptables has none. */
export type ChainsAt = (hook: PacketPlace, ipFamily: IpFamily) => readonly string[];

/** Sources of a list of chains; tests replace them. */
export interface ChainSources {
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Default: those of this network namespace. */
  readonly list?: () => readonly BaseChain[];
  /** CPU time of this process. */
  readonly usedCpu?: () => Millis;
}

/** Reads the chains of this network namespace, in at most a twentieth of the time. Without CAP_NET_ADMIN there are none. */
export function chainReader({ clock, list = listBaseChains, usedCpu = cpuOfProcess }: ChainSources): ChainsAt {
  let latest: { readonly chains: readonly BaseChain[]; readonly until: Millis } | undefined;
  return (hook, ipFamily) => {
    if (latest === undefined || clock.monotonic() > latest.until) {
      const before = usedCpu();
      const chains = orNone(list);
      latest = { chains, until: millis(clock.monotonic() + pauseFactor * (usedCpu() - before)) };
    }
    const family = ipFamily === 'IPv4' ? 'ip' : 'ip6';
    return latest.chains
      .filter((chain) => chain.hook === hook && (chain.family === family || chain.family === 'inet'))
      .filter(({ table }) => !proxyTables.test(table))
      .map(({ family: of, table, chain }) => `${of} ${table} ${chain}`);
  };
}

function cpuOfProcess(): Millis {
  const { user, system } = process.cpuUsage();
  return millis((user + system) / 1000);
}

/** The names are a help: without the right to read them the loss is still explained. */
function orNone(list: () => readonly BaseChain[]): readonly BaseChain[] {
  try {
    return list();
  } catch (error) {
    if (error instanceof HostError) return [];
    throw error;
  }
}
