import type { HealthCheck } from '@switchyard/core';
import type { Chain, ChainRule, PlacedRule, RenderedSettings, TableName } from './chains.ts';
import { chainNames, nfacctNames } from './names.ts';
import type { RenderOptions } from './options.ts';
import { nodePortDestinations } from './node-port-destinations.ts';
import { commentOf, hexOf, ruleOf } from './rule-text.ts';

/** Renders all chains and rules that do not depend on single Services. Pure. */
export function renderSettings(options: RenderOptions): RenderedSettings {
  return {
    chains: [
      markMasq(options),
      postrouting(options),
      forward(options),
      ...(['mangle', 'nat', 'filter'] as const).map((table) => empty(table, chainNames.canary)),
    ],
    shared: [
      { ...empty('nat', chainNames.services), rules: nodePortJumps(options) },
      empty('nat', chainNames.nodePorts),
      empty('filter', chainNames.services),
      empty('filter', chainNames.externalServices),
      empty('filter', chainNames.nodePorts),
      empty('filter', chainNames.proxyFirewall),
    ],
    jumps,
    ensured: options.localhostNodePorts ? ensuredByKubelet : { chains: [], rules: [] },
  };
}

/** Accepts requests to the health check server of a Service, even where INPUT drops by default. Pure. */
export function renderHealthCheck({ service, port }: HealthCheck): ChainRule {
  const comment = commentOf(`${service} health check node port`);
  const rule = ruleOf('-p tcp', comment, `-m tcp --dport ${port}`, '-j ACCEPT');
  return { table: 'filter', chain: chainNames.nodePorts, rule };
}

function empty(table: TableName, name: string): Chain {
  return { table, name, rules: [] };
}

/** KUBE-MARK-MASQ sets the bit that KUBE-POSTROUTING looks for. */
function markMasq({ masqueradeMark }: RenderOptions): Chain {
  const mark = hexOf(masqueradeMark);
  return { table: 'nat', name: chainNames.markMasq, rules: [`-j MARK --set-xmark ${mark}/${mark}`] };
}

/** Clears the bit when it is used: a packet that passes again, for example through a tunnel, must not be masqueraded twice. */
function postrouting({ masqueradeMark, randomFully }: RenderOptions): Chain {
  const mark = hexOf(masqueradeMark);
  return {
    table: 'nat',
    name: chainNames.postrouting,
    rules: [
      `-m mark ! --mark ${mark}/${mark} -j RETURN`,
      `-j MARK --set-xmark ${mark}/0x0`,
      ruleOf(
        commentOf('kubernetes service traffic requiring SNAT'),
        '-j MASQUERADE',
        randomFully ? '--random-fully' : '',
      ),
    ],
  };
}

function forward({ dropInvalid, nfacct, masqueradeMark }: RenderOptions): Chain {
  const mark = hexOf(masqueradeMark);
  const counter = nfacct ? `-m nfacct --nfacct-name  ${nfacctNames.invalidDropped}` : ''; // two blanks, as iptables-save prints it
  const invalid = dropInvalid ? [ruleOf('-m conntrack --ctstate INVALID', counter, '-j DROP')] : [];
  return {
    table: 'filter',
    name: chainNames.forward,
    rules: [
      ...invalid,
      ruleOf(commentOf('kubernetes forwarding rules'), `-m mark --mark ${mark}/${mark} -j ACCEPT`),
      ruleOf(commentOf('kubernetes forwarding conntrack rule'), '-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT'),
    ],
  };
}

/** Jumps to NodePorts stand behind all Service addresses: a Service address that is also the node's is matched first. */
function nodePortJumps(options: RenderOptions): Chain['rules'] {
  const comment = commentOf('kubernetes service nodeports; NOTE: this must be the last rule in this chain');
  return nodePortDestinations(options).map(({ address, type }) =>
    ruleOf(address, comment, type, `-j ${chainNames.nodePorts}`),
  );
}

/** First packets of connections only: what was let in stays in when a Service loses its endpoints. */
const newOnly = '-m conntrack --ctstate NEW';

/** As in kube-proxy. Each is inserted first, so the last one of a chain here is the first that packets pass. */
const jumps: readonly PlacedRule[] = (
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

/** Keeps neighbours out of loopback, which `route_localnet` opens (CVE-2020-8558); the kubelet writes the same. */
const ensuredByKubelet: RenderedSettings['ensured'] = {
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
