import { portNameOf, type ServiceChainNames, serviceChains } from '@switchyard/netfilter/iptables';
import {
  type Cidr,
  type Decision,
  type Frontend,
  isEqual,
  type PodDetector,
  routerDecisions,
  type ServiceForwarding,
  type SourceClass,
  sourceClasses,
  type TrafficPolicy,
  UsageError,
} from '@switchyard/core';
import type { RenderOptions } from './options.ts';
import type { ProtocolName } from './rule-text.ts';

/** Decision per source class that the kernel can distinguish, in matching order; `outside` is the rest. */
export type Fates = ReadonlyMap<SourceClass, Decision>;

/** Inputs for the rules of one Service port, computed once. */
export interface ServicePlan {
  readonly service: ServiceForwarding;
  readonly options: RenderOptions;
  /** `shop/cart:http`, as in comments. */
  readonly label: string;
  readonly protocol: ProtocolName;
  readonly chains: ServiceChainNames;
  /** Decisions for packets to the cluster IP; undefined without one. */
  readonly internal: Fates | undefined;
  /** Decisions for all other frontends except `localOnly`. */
  readonly external: Fates | undefined;
  /** Load-balancer IPs that lead every sender to the endpoints on this node without KUBE-EXT (ipMode `Router`). */
  readonly localOnly: ReadonlySet<Frontend>;
  /** Whether packets of any source class to external frontends are forwarded, which needs a KUBE-EXT chain. */
  readonly hasExternalChain: boolean;
  /** Sources that may use load-balancer IPs other than `localOnly`; also `any` where no packets are forwarded at all. */
  readonly allowedSources: 'any' | readonly Cidr[];
}

/** Throws `UsageError` for decisions that KUBE chains cannot express: `decide` makes none. */
export function planService(service: ServiceForwarding, options: RenderOptions): ServicePlan {
  const clusterIps = service.frontends.filter((frontend) => frontend.kind === 'clusterIP');
  const localOnly = new Set(service.frontends.filter(isLocalOnly));
  const others = service.frontends.filter((frontend) => frontend.kind !== 'clusterIP' && !localOnly.has(frontend));
  const external = commonFates(service, others, options.podDetector);
  const hasExternalChain = external !== undefined && [...external.values()].some(({ kind }) => kind === 'forward');
  return {
    service,
    options,
    label: portNameOf(service.key),
    protocol: service.protocol.toLowerCase() as ProtocolName, // the type says what toLowerCase does
    chains: serviceChains(service.key, service.protocol),
    internal: commonFates(service, clusterIps, options.podDetector),
    external,
    localOnly,
    hasExternalChain,
    allowedSources: hasExternalChain ? commonSources(service, others) : 'any',
  };
}

function isLocalOnly({ kind, decisions }: Frontend): boolean {
  return kind === 'loadBalancerIP' && (decisions === routerDecisions || isEqual(decisions, routerDecisions));
}

/** Whether packets of any sender go to the endpoints of this policy. */
export function leadsTo(plan: ServicePlan, policy: TrafficPolicy): boolean {
  const straight = [...plan.localOnly].map(({ decisions }) => decisions.outside);
  const all = [...(plan.internal?.values() ?? []), ...(plan.external?.values() ?? []), ...straight];
  return all.some((decision) => decision.kind === 'forward' && decision.to === policy);
}

/** Decision for packets that are not forwarded; undefined when all are. They share one rule of the filter table. */
export function refusalOf(plan: ServicePlan, fates: Fates): 'reject' | 'drop' | undefined {
  const kinds = new Set([...fates.values()].map(({ kind }) => kind));
  kinds.delete('forward');
  if (kinds.size > 1) throw inexpressible(plan.service, 'rejects packets of some senders and drops those of others');
  const [kind] = kinds;
  return kind === 'forward' ? undefined : kind;
}

export function inexpressible(service: ServiceForwarding, what: string): UsageError {
  return new UsageError(
    'iptables.inexpressible',
    `rendering ${service.key} as iptables chains: it ${what}, which the KUBE chains cannot express; ` +
      'its rules stay as they are, other Services are not affected',
  );
}

function commonFates(
  service: ServiceForwarding,
  frontends: readonly Frontend[],
  detector: PodDetector,
): Fates | undefined {
  const [first, ...rest] = frontends;
  if (first === undefined) return undefined;
  if (rest.some(({ decisions }) => decisions !== first.decisions && !isEqual(decisions, first.decisions))) {
    throw inexpressible(service, 'decides differently for frontends of one kind');
  }
  const known = sourceClasses.filter((source) => source !== 'pod' || detector.kind !== 'none');
  return new Map(known.map((source) => [source, first.decisions[source]]));
}

function commonSources(service: ServiceForwarding, frontends: readonly Frontend[]): ServicePlan['allowedSources'] {
  const [first, ...rest] = frontends.filter((frontend) => frontend.kind === 'loadBalancerIP');
  if (first === undefined) return 'any';
  if (rest.some(({ allowedSources }) => !isEqual(allowedSources, first.allowedSources))) {
    throw inexpressible(service, 'allows different sources for its load-balancer IPs');
  }
  return first.allowedSources;
}
