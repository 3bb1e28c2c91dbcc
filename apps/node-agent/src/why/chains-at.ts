import { type Clock, type IpFamily, type Millis, millis } from '@switchyard/core';
import type { PacketPlace } from '@switchyard/drops';
import { listBaseChains, type BaseChain } from '@switchyard/netfilter';

/** Names of tables of Service proxies. */
const proxyTables = /^(?:switchyard|kube-proxy)/;
/** A list is read again after this multiple of the time that it took: mostly a millisecond, but 0.1 s with 40,000 chains. */
const pauseFactor = 20;

/** Chains of other programs that see packets of a family at a hook, such as `inet filter forward`; legacy iptables has none. */
export type ChainsAt = (hook: PacketPlace, ipFamily: IpFamily) => readonly string[];

/** Reads the chains of this network namespace, in at most a twentieth of the time. Throws `HostError`. */
export function chainReader(
  clock: Pick<Clock, 'monotonic'>,
  list: () => readonly BaseChain[] = listBaseChains,
): ChainsAt {
  let latest: { readonly chains: readonly BaseChain[]; readonly until: Millis } | undefined;
  return (hook, ipFamily) => {
    const begin = clock.monotonic();
    if (latest === undefined || begin > latest.until) {
      const chains = list();
      const end = clock.monotonic();
      latest = { chains, until: millis(end + pauseFactor * (end - begin)) };
    }
    const family = ipFamily === 'IPv4' ? 'ip' : 'ip6';
    return latest.chains
      .filter((chain) => chain.hook === hook && (chain.family === family || chain.family === 'inet'))
      .filter(({ table }) => !proxyTables.test(table))
      .map(({ family: of, table, chain }) => `${of} ${table} ${chain}`);
  };
}
