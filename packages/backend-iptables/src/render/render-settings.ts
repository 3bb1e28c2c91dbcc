import type { HealthCheck } from '@switchyard/core';
import type { Chain, ChainRule, RenderedSettings, TableName } from './chains.ts';
import { chainNames, nfacctNames } from './names.ts';
import type { RenderOptions } from './options.ts';
import { ensuredByKubelet, jumps } from './jumps.ts';
import { nodePortDestinations } from './node-port-destinations.ts';
import { commentOf, hexOf, ruleOf } from './rule-text.ts';

/** All that is there before the first Service. Pure; nothing in it depends on single Services. */
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

/** Lets load balancers ask the health check server of a Service, whatever the policy of INPUT is. Pure. */
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

/** The bit is cleared when it is used: a packet that comes round again, by a tunnel for one, must not be masqueraded twice. */
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

/** What leads to NodePorts stands behind all addresses of Services: one that is also this node's comes before its NodePorts. */
function nodePortJumps(options: RenderOptions): Chain['rules'] {
  const comment = commentOf('kubernetes service nodeports; NOTE: this must be the last rule in this chain');
  return nodePortDestinations(options).map(({ address, type }) =>
    ruleOf(address, comment, type, `-j ${chainNames.nodePorts}`),
  );
}
