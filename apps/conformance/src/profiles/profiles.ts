import type { CaseInfo } from '../model/case.ts';
import { globPattern } from '../engine/select-cases.ts';
import { type ClaimName, claims } from './claims.ts';

/** Sets of cases that an implementation claims as a whole. */
export const profiles = {
  Core: 'cluster IPs, NodePorts and external IPs, in every protocol and IP family',
  LoadBalancer: 'load-balancer IPs, traffic policies, source ranges, ipMode, health check ports',
  Terminating: 'pods that end: who gets traffic, and what load balancers hear',
  ZeroLoss: 'rolling updates and changes under load lose no connection',
  UDP: 'UDP clients that keep their port',
  Affinity: 'sessionAffinity ClientIP',
  Topology: 'hints for zones and nodes',
  Restart: 'the proxy ends and starts again',
  Configuration: 'fields of KubeProxyConfiguration',
} as const;

export type ProfileName = keyof typeof profiles;

/**
 * `required`: who claims the profile passes it; it rests on the API or a KEP. `extended`: optional, or rests on kube-proxy; a
 * failure counts, but not against the profile. `informative`: records a difference between proxies, which is no failure.
 */
export type Level = 'required' | 'extended' | 'informative';

/** Place of a case in the profiles. */
export interface CasePlace {
  readonly profile: ProfileName;
  readonly level: Level;
  readonly claims: readonly ClaimName[];
  /** Cases of the same place for the same reason, as a glob. */
  readonly group: string;
  /** Whether a check of the case is informative although the case is not. */
  isInformative(checkId: string): boolean;
}

interface Rule {
  readonly glob: string;
  readonly profile: ProfileName;
  readonly level: Level;
  readonly claims: readonly ClaimName[];
  /** Ids of checks that are informative: where the API leaves open what it says for the others. */
  readonly open?: RegExp;
}

type Row = readonly [glob: string, level: Level, claims: readonly ClaimName[], open?: RegExp];

function rulesOf(profile: ProfileName, rows: readonly Row[]): readonly Rule[] {
  return rows.map(([glob, level, basis, open]) => ({
    glob,
    profile,
    level,
    claims: basis,
    ...(open === undefined ? {} : { open }),
  }));
}

/** The API warns pods that send to a NodePort of the policy, and leaves open what they get; of the node itself it says nothing. */
const fromInside = /^(?:pod|node)\//;

/** The first rule that matches a case's id counts; `scenario` cases have rows by name, generated ones by what they vary. */
const rules: readonly Rule[] = [
  ...rulesOf('Terminating', [
    ['matrix/nodePort/Local/{*terminating*,stopped-*}/*', 'required', ['terminating', 'externalLocal'], fromInside],
    [
      'matrix/{externalIP,loadBalancerIP}/Local/{*terminating*,stopped-*}/*',
      'required',
      ['terminating', 'externalLocal', 'shortCircuit'],
    ],
    ['matrix/clusterIP/*/{*terminating*,stopped-*}/*', 'required', ['terminating', 'internalLocal']],
    ['matrix/*/Cluster/{*terminating*,stopped-*}/*', 'required', ['terminating', 'externalCluster']],
    ['matrix/ending-orders/*', 'required', ['terminating', 'healthCheck']],
    ['scenario/terminating-fallback-off/*', 'informative', ['configuration']],
    [
      'scenario/{terminating-fallback-*,local-fallback-*,dual-stack-terminating,etp-local-terminating-elsewhere}/*',
      'required',
      ['terminating'],
    ],
    ['scenario/publish-not-ready/*', 'required', ['publishNotReady', 'terminating']],
    ['scenario/{conditions-unset,duplicate-address}/*', 'required', ['ready', 'slices']],
    ['sequence/terminating-*/*', 'required', ['terminating']],
  ]),
  ...rulesOf('Core', [
    ['matrix/clusterIP/Cluster/*/*', 'required', ['clusterIp', 'ready', 'protocols', 'refused']],
    ['matrix/nodePort/Cluster/*/*', 'required', ['nodePort', 'ready', 'protocols', 'refused']],
    ['matrix/externalIP/Cluster/*/*', 'required', ['externalIps', 'ready', 'protocols', 'refused']],
    [
      'scenario/{cluster-ip,cluster-ip-moves,many-endpoints,host-network-endpoints,reused-pod-ip}/*',
      'required',
      ['clusterIp', 'slices'],
    ],
    ['scenario/{named-ports,port-per-slice,target-port-changes}/*', 'required', ['ports']],
    ['scenario/{one-port-three-protocols,sctp}/*', 'required', ['ports', 'protocols']],
    ['scenario/{headless-slices,not-proxied}/*', 'required', ['notProxied']],
    ['scenario/odd-slices/*', 'required', ['slices']],
    ['scenario/{node-port,node-port-moves}/*', 'required', ['nodePort', 'mutable']],
    ['scenario/{external-ip,external-ip-edits}/*', 'required', ['externalIps', 'shortCircuit']],
    ['scenario/service-type-tour/*', 'required', ['mutable']],
    ['scenario/dual-stack-endpoints/*', 'required', ['dualStack']],
    ['scenario/relaxed-name/*', 'required', ['names']],
    ['scenario/hairpin/*', 'extended', ['hairpin']],
    ['scenario/forty-endpoints/*', 'extended', ['slices']],
    ['scenario/external-ip-is-cluster-ip/*', 'extended', ['externalIps', 'detail']],
    ['scenario/{shared-external-ip,vip-is-node-address,external-refused-from-node}/*', 'informative', ['detail']],
    ['scenario/{unknown-port*,unallocated-cluster-ip,service-cidr-changes}/*', 'informative', ['modesDiffer']],
    ['sequence/stray-segments/*', 'informative', ['modesDiffer']],
  ]),
  ...rulesOf('LoadBalancer', [
    ['matrix/loadBalancerIP/Cluster/*/*', 'required', ['loadBalancer', 'externalCluster', 'ready']],
    ['matrix/{externalIP,loadBalancerIP}/Local/*/*', 'required', ['externalLocal', 'shortCircuit', 'healthCheck']],
    ['matrix/nodePort/Local/*/*', 'required', ['externalLocal'], fromInside],
    ['matrix/clusterIP/Local/*/*', 'required', ['internalLocal']],
    [
      'scenario/{load-balancer-cluster,load-balancer-status,load-balancer-without-node-port}/*',
      'required',
      ['loadBalancer'],
    ],
    ['scenario/load-balancer-ip-mode/*', 'required', ['ipMode']],
    ['scenario/load-balancer-ip-mode-router*/*', 'informative', ['gate']],
    [
      'scenario/{itp-local,itp-local-with-node-port,itp-toggle,both-policies-local,dual-stack-policies}/*',
      'required',
      ['internalLocal', 'externalLocal'],
    ],
    ['scenario/{etp-local,etp-toggle,etp-leftover}/*', 'extended', ['externalLocal', 'detail']],
    ['scenario/etp-local-no-endpoints/*', 'extended', ['externalLocal', 'detail']],
    ['scenario/{health-check-node-port,health-check-transitions}/*', 'required', ['healthCheck', 'terminating']],
    ['sequence/health-node-ports/*', 'required', ['healthCheck', 'terminating']],
    ['scenario/source-ranges-node-loopback/*', 'informative', ['detail']],
    ['scenario/{source-ranges*,external-ip-is-load-balancer-ip}/*', 'extended', ['sourceRanges']],
  ]),
  ...rulesOf('ZeroLoss', [
    ['rollout/daemonset/Cluster/*', 'required', ['surge', 'changesTakeEffect']],
    ['rollout/**', 'required', ['terminating', 'changesTakeEffect']],
    [
      'sequence/{etp-toggle-under-load,itp-toggle-under-load,service-type-tour-under-load}/*',
      'required',
      ['mutable', 'changesTakeEffect'],
    ],
    ['sequence/{endpoint-churn,dual-stack}/*', 'required', ['changesTakeEffect']],
    ['sequence/{source-range-edits}/*', 'extended', ['sourceRanges', 'changesTakeEffect']],
    ['sequence/hold-open/*', 'extended', ['established']],
  ]),
  ...rulesOf('UDP', [
    ['scenario/{udp-stale-flows,udp-policies,udp-deleted-service}/*', 'required', ['udpFlows']],
    ['sequence/{udp-endpoint-replacement,udp-before-service}/*', 'required', ['udpFlows']],
    ['sequence/udp-{connected,unconnected}-socket/*', 'required', ['udpFlows']],
    ['scenario/client-port-is-a-frontend/*', 'extended', ['detail']],
  ]),
  ...rulesOf('Affinity', [
    ['scenario/{session-affinity,session-affinity-local,session-affinity-toggle}/*', 'required', ['affinity']],
    ['sequence/affinity-timeouts/*', 'required', ['affinity']],
    ['scenario/affinity-both-policies*/*', 'informative', ['modesDiffer']],
  ]),
  ...rulesOf('Topology', [
    ['scenario/topology-node/*', 'extended', ['nodeHints']],
    ['scenario/topology-*/*', 'extended', ['zoneHints']],
  ]),
  ...rulesOf('Restart', [
    ['sequence/{restart-under-load,agent-down,stale-after-restart,many-changes-then-stop}/*', 'extended', ['restart']],
    ['scenario/{restart,health-check-after-restart}/*', 'extended', ['restart']],
  ]),
  ...rulesOf('Configuration', [
    // Its end asks that NodePorts follow a changed Node address, which kube-proxy only logs.
    ['scenario/node-port-primary/*', 'informative', ['detail']],
    [
      'scenario/{node-port-*,dual-stack-node-port-addresses,masquerade-all,no-pod-detector,pod-*,off-cluster-cluster-ip}/*',
      'extended',
      ['configuration'],
    ],
    ['sequence/node-port-address-change/*', 'extended', ['configuration']],
  ]),
];

const patterns = rules.map((rule) => ({ rule, pattern: globPattern(rule.glob) }));

/** Undefined for a scenario of the user's own. */
export function placeOf({ id }: Pick<CaseInfo, 'id'>): CasePlace | undefined {
  const rule = patterns.find(({ pattern }) => pattern.test(id))?.rule;
  if (rule === undefined) return undefined;
  const { glob: group, profile, level, claims: basis, open } = rule;
  return { profile, level, claims: basis, group, isInformative: (checkId) => open?.test(checkId) === true };
}

/** Rules that decide no case of these, and claims without a rule: leftovers. */
export function leftovers(ids: readonly string[]): readonly string[] {
  const used = new Set(ids.map((id) => patterns.find(({ pattern }) => pattern.test(id))?.rule));
  const named = new Set(rules.flatMap((rule) => rule.claims));
  return [
    ...rules.filter((rule) => !used.has(rule)).map(({ glob }) => glob),
    ...Object.keys(claims).filter((name) => !named.has(name as ClaimName)),
  ];
}
