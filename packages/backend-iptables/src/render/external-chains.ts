import { type Decision, isEqual, type SourceClass, type TrafficPolicy } from '@switchyard/core';
import type { Chain, RuleText } from './chains.ts';
import { chainNames } from './names.ts';
import { commentOf, ruleOf } from './rule-text.ts';
import type { ServicePlan } from './service-plan.ts';
import { matchOf } from './source-match.ts';

const policyChain: Readonly<Record<TrafficPolicy, 'SVC' | 'SVL'>> = { Cluster: 'SVC', Local: 'SVL' };

/**
 * KUBE-EXT: what is sent to external frontends. Each class of senders that is treated unlike those after it has rules of its
 * own, first those of pods, then those of the node; the last rules are for all others. Packets that match no rule are not
 * translated, and the filter table refuses them.
 */
export function externalChain(plan: ServicePlan): Chain {
  const { external } = plan;
  const fates = [...(external ?? [])];
  const special = fates.filter(([, decision], index) =>
    fates.slice(index + 1).some(([, later]) => !isEqual(later, decision)),
  );
  const rules = special.flatMap(([source, decision]) =>
    source === 'outside' ? [] : senderRules(plan, source, decision),
  );
  return { table: 'nat', name: plan.chains.EXT, rules: [...rules, ...remainingRules(plan, external?.get('outside'))] };
}

/** KUBE-FW: only allowed sources reach KUBE-EXT. */
export function firewallChain(plan: ServicePlan): Chain {
  const sources = plan.allowedSources === 'any' ? [] : plan.allowedSources;
  const comment = commentOf(`${plan.label} loadbalancer IP`);
  return {
    table: 'nat',
    name: plan.chains.FW,
    rules: [
      ...sources.map((cidr) => ruleOf(`-s ${cidr}`, comment, `-j ${plan.chains.EXT}`)),
      commentOf(`other traffic to ${plan.label} will be dropped by ${chainNames.proxyFirewall}`),
    ],
  };
}

/** The chain of the endpoints that a decision leads to. */
export function endpointsChain(plan: ServicePlan, to: TrafficPolicy): string {
  return plan.chains[policyChain[to]];
}

const words: Readonly<Record<Exclude<SourceClass, 'outside'>, { readonly one: string; readonly route: string }>> = {
  pod: { one: 'pod', route: 'pod' },
  node: { one: 'LOCAL', route: 'route LOCAL' },
};

function senderRules(
  plan: ServicePlan,
  source: Exclude<SourceClass, 'outside'>,
  decision: Decision,
): readonly RuleText[] {
  const { address, incoming, type } = matchOf(source, plan.options.podDetector);
  const rule = (what: string, target: string): RuleText =>
    ruleOf(
      address,
      incoming,
      commentOf(`${what} traffic for ${plan.label} external destinations`),
      type,
      `-j ${target}`,
    );
  const { one, route } = words[source];
  if (decision.kind !== 'forward') return [rule(`refuse ${one}`, 'RETURN')];
  const mark = decision.masquerade ? [rule(`masquerade ${one}`, chainNames.markMasq)] : [];
  return [...mark, rule(route, endpointsChain(plan, decision.to))];
}

function remainingRules(plan: ServicePlan, decision: Decision | undefined): readonly RuleText[] {
  if (decision?.kind !== 'forward') return [];
  const comment = commentOf(`masquerade traffic for ${plan.label} external destinations`);
  const mark = decision.masquerade ? [ruleOf(comment, `-j ${chainNames.markMasq}`)] : [];
  return [...mark, `-j ${endpointsChain(plan, decision.to)}`];
}
