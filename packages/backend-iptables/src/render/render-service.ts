import { hostCidr, type IpAddress, type ServiceForwarding, type SourceClass } from '@switchyard/core';
import type { Chain, RenderedService, RuleText } from './chains.ts';
import { chainNames } from './names.ts';
import type { RenderOptions } from './options.ts';
import { choiceRules, endpointChainOf, namedEndpoints } from './endpoint-chains.ts';
import { endpointsChain, externalChain, firewallChain } from './external-chains.ts';
import { commentOf, ruleOf } from './rule-text.ts';
import { entriesOf, internalChain } from './service-entries.ts';
import { planService, type ServicePlan } from './service-plan.ts';
import { matchesOf } from './source-match.ts';

/** Chains and entries of one Service port. Throws `UsageError` for decisions that KUBE chains cannot express. */
export function renderService(service: ServiceForwarding, options: RenderOptions): RenderedService {
  const plan = planService(service, options);
  const chains: Chain[] = [];
  const done = new Set<string>();
  const policies = namedEndpoints(plan);
  for (const endpoints of policies.values()) {
    for (const endpoint of endpoints) {
      if (done.has(endpoint.chain)) continue;
      done.add(endpoint.chain);
      chains.push(endpointChainOf(plan, endpoint));
    }
  }
  for (const [policy, endpoints] of policies) {
    const name = endpointsChain(plan, policy);
    const masquerade = internalChain(plan) === name ? masqueradeRules(plan) : [];
    chains.push({ table: 'nat', name, rules: [...masquerade, ...choiceRules(plan, endpoints)] });
  }
  if (plan.hasExternalChain) chains.push(externalChain(plan));
  if (plan.allowedSources !== 'any') chains.push(firewallChain(plan));
  return { chains, entries: service.frontends.flatMap((frontend) => entriesOf(plan, frontend)) };
}

/** Marks packets to the cluster IP from senders whose answers must return through this node. */
function masqueradeRules(plan: ServicePlan): readonly RuleText[] {
  const classes = new Set<SourceClass>();
  for (const [source, decision] of plan.internal ?? []) {
    if (decision.kind === 'forward' && decision.masquerade) classes.add(source);
  }
  const { label, protocol, service, options } = plan;
  const comment = commentOf(`${label} cluster IP`);
  return service.frontends
    .filter((frontend) => frontend.kind === 'clusterIP')
    .flatMap((frontend) =>
      matchesOf(classes, options.podDetector).map(({ address, incoming, type }) =>
        ruleOf(
          address,
          `-d ${hostCidr(frontend.address as IpAddress)}`, // only NodePorts have none
          incoming,
          `-p ${protocol}`,
          comment,
          `-m ${protocol} --dport ${frontend.port}`,
          type,
          `-j ${chainNames.markMasq}`,
        ),
      ),
    );
}
