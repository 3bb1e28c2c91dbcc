import { assertNever, type Frontend, hostCidr, type IpAddress } from '@switchyard/core';
import type { ChainRule } from './chains.ts';
import { chainNames, nfacctNames } from './names.ts';
import { endpointsChain } from './external-chains.ts';
import { nodePortDestinations } from './node-port-destinations.ts';
import { commentOf, rejectTarget, ruleOf } from './rule-text.ts';
import { type Fates, inexpressible, refusalOf, type ServicePlan } from './service-plan.ts';

/** The rules in shared chains by which packets to a frontend find the chains of its Service port, or are refused. */
export function entriesOf(plan: ServicePlan, frontend: Frontend): readonly ChainRule[] {
  switch (frontend.kind) {
    case 'clusterIP':
      return clusterIpEntries(plan, frontend);
    case 'externalIP':
      return addressEntries(plan, frontend, { comment: 'external IP', chain: plan.chains.EXT });
    case 'loadBalancerIP':
      return plan.localOnly.has(frontend) ? localOnlyEntries(plan, frontend) : loadBalancerEntries(plan, frontend);
    case 'nodePort':
      return nodePortEntries(plan, frontend);
    default:
      return assertNever(frontend.kind);
  }
}

/** The chain for packets to the cluster IP; undefined when they are refused. */
export function internalChain(plan: ServicePlan): string | undefined {
  const fates = [...(plan.internal?.values() ?? [])];
  const targets = new Set(fates.map((fate) => (fate.kind === 'forward' ? endpointsChain(plan, fate.to) : fate.kind)));
  if (targets.size > 1) throw inexpressible(plan.service, 'treats senders to its cluster IP differently');
  const [first] = fates;
  return first?.kind === 'forward' ? endpointsChain(plan, first.to) : undefined;
}

function clusterIpEntries(plan: ServicePlan, frontend: Frontend): readonly ChainRule[] {
  const chain = internalChain(plan);
  if (chain === undefined) return refusals(plan, frontend, { chain: chainNames.services, fates: plan.internal });
  return [natEntry(plan, frontend, { comment: 'cluster IP', chain })];
}

function loadBalancerEntries(plan: ServicePlan, frontend: Frontend): readonly ChainRule[] {
  const isGuarded = plan.allowedSources !== 'any';
  const chain = isGuarded ? plan.chains.FW : plan.chains.EXT;
  const entries = addressEntries(plan, frontend, { comment: 'loadbalancer IP', chain });
  if (!isGuarded) return entries;
  const comment = commentOf(`${plan.label} traffic not accepted by ${plan.chains.FW}`);
  const rule = ruleOf(...placeOf(plan, frontend, comment), '-j DROP');
  return [...entries, { table: 'filter', chain: chainNames.proxyFirewall, rule }];
}

/** Leads to KUBE-SVL by rules of its own: KUBE-EXT and KUBE-FW belong to the Service's other frontends. */
function localOnlyEntries(plan: ServicePlan, frontend: Frontend): readonly ChainRule[] {
  const lead = { comment: 'loadbalancer IP', chain: endpointsChain(plan, 'Local') };
  const { allowedSources } = frontend;
  if (allowedSources === 'any') return [natEntry(plan, frontend, lead)];
  const place = placeOf(plan, frontend, commentOf(`${plan.label} traffic outside loadBalancerSourceRanges`));
  return [
    ...allowedSources.map((cidr) => natEntry(plan, frontend, lead, `-s ${cidr}`)),
    { table: 'filter', chain: chainNames.proxyFirewall, rule: ruleOf(...place, '-j DROP') },
  ];
}

function addressEntries(
  plan: ServicePlan,
  frontend: Frontend,
  lead: { readonly comment: string; readonly chain: string },
): readonly ChainRule[] {
  return [
    ...(plan.hasExternalChain ? [natEntry(plan, frontend, lead)] : []),
    ...refusals(plan, frontend, { chain: chainNames.externalServices, fates: plan.external }),
  ];
}

function nodePortEntries(plan: ServicePlan, frontend: Frontend): readonly ChainRule[] {
  const { options, protocol } = plan;
  const comment = commentOf(plan.label);
  const rule = (address: string, counter: string): ChainRule => ({
    table: 'nat',
    chain: chainNames.nodePorts,
    rule: ruleOf(address, ...portMatch(plan, frontend, comment), counter, `-j ${plan.chains.EXT}`),
  });
  // Two blanks: so does iptables-save print a counter's name.
  const counted = rule('-d 127.0.0.0/8', `-m nfacct --nfacct-name  ${nfacctNames.localhostNodePorts}`);
  const leads = plan.hasExternalChain
    ? [...(options.localhostNodePorts && options.nfacct ? [counted] : []), rule('', '')]
    : [];
  const refused = refusalTarget(plan, plan.external);
  if (refused === undefined) return leads;
  const refusal = nodePortDestinations(options).map(({ address, type }): ChainRule => ({
    table: 'filter',
    chain: chainNames.externalServices,
    rule: ruleOf(
      address,
      `-p ${protocol}`,
      commentOf(`${plan.label} ${refused.comment}`),
      type,
      `-m ${protocol} --dport ${frontend.port}`,
      refused.target,
    ),
  }));
  return [...leads, ...refusal];
}

function natEntry(
  plan: ServicePlan,
  frontend: Frontend,
  { comment, chain }: { readonly comment: string; readonly chain: string },
  source = '',
): ChainRule {
  const place = [source, ...placeOf(plan, frontend, commentOf(`${plan.label} ${comment}`))];
  return { table: 'nat', chain: chainNames.services, rule: ruleOf(...place, `-j ${chain}`) };
}

function refusals(
  plan: ServicePlan,
  frontend: Frontend,
  { chain, fates }: { readonly chain: string; readonly fates: Fates | undefined },
): readonly ChainRule[] {
  const refused = refusalTarget(plan, fates);
  if (refused === undefined) return [];
  const place = placeOf(plan, frontend, commentOf(`${plan.label} ${refused.comment}`));
  return [{ table: 'filter', chain, rule: ruleOf(...place, refused.target) }];
}

function refusalTarget(
  plan: ServicePlan,
  fates: Fates | undefined,
): { readonly comment: string; readonly target: string } | undefined {
  const refusal = fates === undefined ? undefined : refusalOf(plan, fates);
  if (refusal === undefined) return undefined;
  return refusal === 'reject'
    ? { comment: 'has no endpoints', target: rejectTarget(plan.options.ipFamily) }
    : { comment: 'has no local endpoints', target: '-j DROP' };
}

/** The parts of a rule that match packets to a frontend with an address. */
function placeOf(plan: ServicePlan, frontend: Frontend, comment: string): readonly string[] {
  const address = frontend.address as IpAddress; // only NodePorts have none
  return [`-d ${hostCidr(address)}`, ...portMatch(plan, frontend, comment)];
}

function portMatch({ protocol }: ServicePlan, { port }: Frontend, comment: string): readonly string[] {
  return [`-p ${protocol}`, comment, `-m ${protocol} --dport ${port}`];
}
