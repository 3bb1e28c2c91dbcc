import { endpointChain } from '@switchyard/netfilter/iptables';
import { addressAndPort, type Endpoint, type TrafficPolicy } from '@switchyard/core';
import type { Chain, RuleText } from './chains.ts';
import { chainNames } from './names.ts';
import { commentOf, hostMask, ruleOf } from './rule-text.ts';
import { leadsTo, type ServicePlan } from './service-plan.ts';

export interface NamedEndpoint {
  /** `10.0.0.1:80` or `[fd00::1]:80`. */
  readonly text: string;
  readonly address: string;
  readonly chain: string;
}

/** Endpoints of each policy in use, sorted by text as in kube-proxy, which keeps KUBE-SVC chains equal. */
export function namedEndpoints(plan: ServicePlan): ReadonlyMap<TrafficPolicy, readonly NamedEndpoint[]> {
  const named = new Map<string, NamedEndpoint>();
  const nameOf = (endpoint: Endpoint): NamedEndpoint => {
    const text = addressAndPort(endpoint.address, endpoint.port);
    let known = named.get(text);
    if (known === undefined) {
      const chain = endpointChain(plan.service.key, plan.service.protocol, text);
      named.set(text, (known = { text, address: endpoint.address, chain }));
    }
    return known;
  };
  const policies = (['Cluster', 'Local'] as const).filter((policy) => leadsTo(plan, policy));
  return new Map(
    policies.map((policy) => [
      policy,
      plan.service.endpoints[policy].map(nameOf).sort((a, b) => (a.text < b.text ? -1 : 1)),
    ]),
  );
}

/** KUBE-SEP: one endpoint. Hairpin traffic is masqueraded, or its answers would not return through this node. */
export function endpointChainOf(plan: ServicePlan, endpoint: NamedEndpoint): Chain {
  const comment = plan.options.comments ? commentOf(plan.label) : '';
  const isIpv4 = plan.options.ipFamily === 'IPv4';
  const remember = isAffine(plan) ? `-m recent --set ${recentList(plan, endpoint)}` : '';
  return {
    table: 'nat',
    name: endpoint.chain,
    rules: [
      ruleOf(`-s ${endpoint.address}/${isIpv4 ? 32 : 128}`, comment, `-j ${chainNames.markMasq}`),
      ruleOf(
        `-p ${plan.protocol}`,
        comment,
        remember,
        `-m ${plan.protocol}`,
        `-j DNAT --to-destination ${endpoint.text}`,
      ),
    ],
  };
}

/** The rules of KUBE-SVC or KUBE-SVL that choose an endpoint: the one of this client, then any with equal chance. */
export function choiceRules(plan: ServicePlan, endpoints: readonly NamedEndpoint[]): readonly RuleText[] {
  const { sessionAffinity } = plan.service;
  const rules: RuleText[] = [];
  const add = (endpoint: NamedEndpoint, match: string): void => {
    const comment = plan.options.comments ? commentOf(`${plan.label} -> ${endpoint.text}`) : '';
    rules.push(ruleOf(comment, match, `-j ${endpoint.chain}`));
  };
  if (sessionAffinity.kind === 'clientIP') {
    const seconds = Math.max(1, Math.round(sessionAffinity.timeout / 1000));
    for (const endpoint of endpoints) {
      add(endpoint, `-m recent --rcheck --seconds ${seconds} --reap ${recentList(plan, endpoint)}`);
    }
  }
  endpoints.forEach((endpoint, index) => {
    const left = endpoints.length - index;
    add(endpoint, left > 1 ? `-m statistic --mode random --probability ${probabilityOf(left)}` : '');
  });
  return rules;
}

function isAffine(plan: ServicePlan): boolean {
  return plan.service.sessionAffinity.kind === 'clientIP';
}

/** The kernel's list of an endpoint's clients (xt_recent), by the whole address. */
function recentList({ options }: ServicePlan, { chain }: NamedEndpoint): string {
  return `--name ${chain} --mask ${hostMask(options.ipFamily)} --rsource`;
}

const cache: string[] = [];

/** The kernel keeps probabilities as multiples of this part. */
const one = 2 ** 31;

/** One in `count`, as `iptables-save` prints the kernel's multiple of 2^-31 for kube-proxy's ten digits. */
export function probabilityOf(count: number): string {
  return (cache[count] ??= printed(Math.round(Number((1 / count).toFixed(10)) * one)));
}

/** `multiple` / 2^31 with eleven digits; a tie goes to the even digit, as printf has it (1 in 4096 is one). */
function printed(multiple: number): string {
  const scaled = BigInt(multiple) * 10n ** 11n;
  const whole = BigInt(one);
  let digits = scaled / whole;
  const twice = (scaled % whole) * 2n;
  if (twice > whole || (twice === whole && digits % 2n === 1n)) digits += 1n;
  const text = digits.toString().padStart(12, '0');
  return `${text.slice(0, -11)}.${text.slice(-11)}`;
}
