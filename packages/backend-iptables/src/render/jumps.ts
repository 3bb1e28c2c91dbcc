import type { PlacedRule, RenderedSettings } from './chains.ts';
import { chainNames } from './names.ts';
import { commentOf, ruleOf } from './rule-text.ts';

/** First packets of connections only: what was let in stays in when a Service loses its endpoints. */
const newOnly = '-m conntrack --ctstate NEW';

/**
 * Rules in the kernel's chains that lead to the agent's, as in kube-proxy. Each is inserted before the present rules, so the last one
 * of a chain in this list is the first that packets pass.
 */
export const jumps: readonly PlacedRule[] = (
  [
    ['filter', 'INPUT', chainNames.externalServices, newOnly, 'kubernetes externally-visible service portals'],
    ['filter', 'FORWARD', chainNames.externalServices, newOnly, 'kubernetes externally-visible service portals'],
    ['filter', 'INPUT', chainNames.nodePorts, '', 'kubernetes health check service ports'],
    ['filter', 'FORWARD', chainNames.services, newOnly, 'kubernetes service portals'],
    ['filter', 'OUTPUT', chainNames.services, newOnly, 'kubernetes service portals'],
    ['filter', 'FORWARD', chainNames.forward, '', 'kubernetes forwarding rules'],
    ['filter', 'INPUT', chainNames.proxyFirewall, newOnly, 'kubernetes load balancer firewall'],
    ['filter', 'OUTPUT', chainNames.proxyFirewall, newOnly, 'kubernetes load balancer firewall'],
    ['filter', 'FORWARD', chainNames.proxyFirewall, newOnly, 'kubernetes load balancer firewall'],
    ['nat', 'OUTPUT', chainNames.services, '', 'kubernetes service portals'],
    ['nat', 'PREROUTING', chainNames.services, '', 'kubernetes service portals'],
    ['nat', 'POSTROUTING', chainNames.postrouting, '', 'kubernetes postrouting rules'],
  ] as const
).map(([table, chain, to, match, comment]) => ({
  table,
  chain,
  rule: ruleOf(match, commentOf(comment), `-j ${to}`),
  place: 'first',
}));

/**
 * With `route_localnet`, which NodePorts on 127.0.0.0/8 need, neighbours could reach what listens on loopback alone. This keeps
 * them out (CVE-2020-8558); the kubelet writes the same, in the same chain.
 */
export const ensuredByKubelet: RenderedSettings['ensured'] = {
  chains: [{ table: 'filter', name: chainNames.kubeletFirewall }],
  rules: [
    {
      table: 'filter',
      chain: chainNames.kubeletFirewall,
      rule: ruleOf(
        '! -s 127.0.0.0/8 -d 127.0.0.0/8',
        commentOf('block incoming localnet connections'),
        '-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP',
      ),
      place: 'last',
    },
    { table: 'filter', chain: 'INPUT', rule: `-j ${chainNames.kubeletFirewall}`, place: 'first' },
    { table: 'filter', chain: 'OUTPUT', rule: `-j ${chainNames.kubeletFirewall}`, place: 'first' },
  ],
};
