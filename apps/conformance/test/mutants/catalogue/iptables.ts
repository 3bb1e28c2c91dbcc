import { type Mutant, mutantsOf } from '../mutant.ts';

const of = (file: string, rows: Parameters<typeof mutantsOf>[2]): readonly Mutant[] =>
  mutantsOf('iptables', `packages/backend-iptables/src/${file}`, rows);

/** The iptables backend: its chains, and what it does to those that are there. */
export const iptablesMutants: readonly Mutant[] = [
  ...of('render/endpoint-chains.ts', [
    [
      'probability-off',
      'the probabilities of endpoints leave a rest that no endpoint gets',
      'iptables-nft',
      'const left = endpoints.length - index;',
      'const left = endpoints.length - index + 1;',
    ],
    [
      'hairpin-not-masqueraded',
      'an endpoint that reaches itself by its Service sees its own address',
      'iptables-nft',
      'ruleOf(`-s ${endpoint.address}/${isIpv4 ? 32 : 128}`, comment, `-j ${chainNames.markMasq}`),',
      '',
    ],
    [
      'wrong-port',
      'endpoints get packets on the port of the Service instead of their own',
      'iptables-legacy',
      '`-j DNAT --to-destination ${endpoint.text}`',
      '`-j DNAT --to-destination ${endpoint.address}`',
    ],
    [
      'affinity-not-kept',
      'endpoints do not remember their clients',
      'iptables-legacy',
      "const remember = isAffine(plan) ? `-m recent --set ${recentList(plan, endpoint)}` : '';",
      "const remember = isAffine(plan) ? '' : '';",
    ],
    [
      'affinity-never-expires',
      'clients keep their endpoint for ever',
      'iptables-nft',
      '-m recent --rcheck --seconds ${seconds} --reap ${recentList(plan, endpoint)}',
      '-m recent --rcheck --seconds ${seconds * 1000} --reap ${recentList(plan, endpoint)}',
    ],
    [
      'affinity-by-network',
      'all clients of a network share one session',
      'iptables-nft',
      '--mask ${hostMask(options.ipFamily)} --rsource',
      "--mask ${options.ipFamily === 'IPv4' ? '255.255.0.0' : 'ffff:ffff:ffff:ffff::'} --rsource",
    ],
  ]),
  ...of('render/external-chains.ts', [
    [
      'jump-order',
      'the rules of pods and of the node come after the rule for all',
      'iptables-nft',
      "rules: [...rules, ...remainingRules(plan, external?.get('outside'))]",
      "rules: [...remainingRules(plan, external?.get('outside')), ...rules]",
    ],
    [
      'allowed-sources-not-masqueraded',
      'whom the source ranges let in goes past the decisions on masquerading',
      'iptables-legacy',
      'ruleOf(`-s ${cidr}`, comment, `-j ${plan.chains.EXT}`)',
      'ruleOf(`-s ${cidr}`, comment, `-j ${plan.chains.SVC}`)',
    ],
  ]),
  ...of('render/service-entries.ts', [
    [
      'source-ranges-on-node-ports',
      'source ranges shut senders out of NodePorts as well',
      'iptables-nft',
      'rule: ruleOf(address, ...portMatch(plan, frontend, comment), counter, `-j ${plan.chains.EXT}`),',
      "rule: ruleOf(address, ...portMatch(plan, frontend, comment), counter, `-j ${plan.allowedSources === 'any' ? plan.chains.EXT : plan.chains.FW}`),",
    ],
    [
      'firewall-open',
      'whom the source ranges do not let in is not dropped',
      'iptables-nft',
      "const rule = ruleOf(...placeOf(plan, frontend, comment), '-j DROP');",
      "const rule = ruleOf(...placeOf(plan, frontend, comment), '-j RETURN');",
    ],
    [
      'refusals-swapped',
      'silence where an error is due, and an error where silence is',
      'iptables-legacy',
      "return refusal === 'reject'",
      "return refusal !== 'reject'",
    ],
  ]),
  ...of('render/source-match.ts', [
    [
      'wrong-masquerade',
      'only pods are masqueraded at cluster IPs',
      'iptables-nft',
      "const rest = knowsPods ? podMatch(detector, '! ') : any;",
      "const rest = knowsPods ? podMatch(detector, '') : any;",
    ],
    [
      'interface-prefix-exact',
      'a prefix of pod interfaces is taken for a name',
      'iptables-legacy',
      'Buffer.byteLength(prefix) < maxInterfaceNameLength ? `${prefix}+` : prefix',
      'prefix',
    ],
  ]),
  ...of('render/node-port-destinations.ts', [
    [
      'node-port-anywhere',
      'NodePorts answer on all local addresses, not only on the selected ones',
      'iptables-nft',
      "return isEverything(cidr) ? '' : `-d ${cidr}`;",
      "return isEverything(cidr) ? '' : '';",
    ],
    [
      'loopback-answers',
      'NodePorts answer on loopback where that was switched off',
      'iptables-legacy',
      'if (isEverything(cidr)) return [{ address: `! -d ${loopback}`, type: local }];',
      "if (isEverything(cidr)) return [{ address: '', type: local }];",
    ],
  ]),
  ...of('render/render-settings.ts', [
    [
      'firewall-not-on-forward',
      'source ranges are not enforced for what is forwarded',
      'iptables-nft',
      "    ['filter', 'FORWARD', chainNames.proxyFirewall, newOnly, 'kubernetes load balancer firewall'],\n",
      '',
    ],
    [
      'nothing-from-node',
      'what the node itself sends to Services is not translated',
      'iptables-legacy',
      "    ['nat', 'OUTPUT', chainNames.services, '', 'kubernetes service portals'],\n",
      '',
    ],
  ]),
  ...of('kernel/apply/plan-entries.ts', [
    [
      'stale-entries',
      'the entries that a Service no longer has stay',
      'iptables-nft',
      "changes.push({ kind: 'delete', table, chain, rule });",
      '',
    ],
    [
      'entries-appended-first',
      'entries of one Service stand in the wrong order',
      'iptables-legacy',
      'for (let at = wanted.length - 1; at >= 0; at--) {',
      'for (let at = 0; at < wanted.length; at++) {',
    ],
  ]),
  ...of('backend.ts', [
    [
      'cleanup-at-exit',
      'the agent takes its rules away when it ends',
      'iptables-nft',
      'this.#engine.forget(); // forwarding stays',
      'await this.cleanup(AbortSignal.timeout(3000)).catch(() => undefined);',
    ],
  ]),
];
