import { type IpAddress, ipFamilyOf } from '../ip/address.ts';
import { cidrContains, loopbackAddress, loopbackOf } from '../ip/cidr.ts';
import { assertNever } from '../../base/argument.ts';
import { checkFlow, checkTraits, checkTable } from './check-input.ts';
import { describeSet } from './explain-endpoints.ts';
import { isSentBySocket, socketClassOf } from './source-class.ts';
import type { DataplaneTraits } from './dataplane-traits.ts';
import type { Explanation, Flow, Reason, ReasonCode } from './explain-types.ts';
import type {
  Decision,
  Endpoint,
  ForwardingTable,
  Frontend,
  PodDetector,
  ServiceForwarding,
  SourceClass,
} from './forwarding-table.ts';
import type { TrafficPolicy } from '../records/records.ts';
import { isLoopbackProxied } from './loopback-node-port.ts';

/**
 * Returns the verdict of a dataplane with these traits on the first packet of a connection, with reasons. Every backend
 * must produce the same verdict. Ordering of the reasons: which rule matched, source ranges, policy, endpoints,
 * source address. It scans the table: for tests, dumps and reports only.
 *
 * Throws `UsageError`, which names the field and its value, for a flow that no packet can have: an address that `parseIp` did
 * not make, two families, port 0.
 */
export function explain(table: ForwardingTable, flow: Flow, traits: DataplaneTraits): Explanation {
  checkTable('explain: table', table);
  checkFlow(flow);
  checkTraits(traits);
  const match = findFrontend(table, flow);
  if (match === undefined) return explainNoService(table, flow, traits);
  const { service, frontend } = match;
  const reasons = matchReasons(table, flow, match);
  const answer = (verdict: Explanation['verdict'], more: readonly Reason[]): Explanation => ({
    verdict,
    service: service.key,
    frontend,
    reasons: [...reasons, ...more],
  });
  const sentBy = senderOf(table, flow, { frontend, traits });
  const packetFrom = sentBy === 'proxy' ? 'outside' : flow.from;
  const from = sentBy === 'socket' ? socketClassOf(table, flow) : packetFrom;
  const decision = decisionFor(frontend.decisions[from], sentBy);
  const ranges = frontend.allowedSources;
  const isChecked = decision.kind !== 'reject' || traits.sourceRangesWithoutEndpoints === 'checked';
  if (ranges !== 'any' && isChecked) {
    const range = ranges.find((cidr) => cidrContains(cidr, flow.source));
    const list = ranges.join(', ');
    if (range === undefined) {
      return answer({ kind: 'drop' }, [
        reason('sourceNotAllowed', `${flow.source} is in none of the allowed source ranges ${list}`),
      ]);
    }
    reasons.push(reason('sourceAllowed', `${flow.source} is in the allowed source range ${range}`));
  }
  const more = decisionReasons(decision, match, { flow: { ...flow, from }, podDetector: table.podDetector, sentBy });
  if (traits.externalIpsRefuse === 'arriving' && isSentToRefusal(flow, match)) {
    const text = `the ${traits.name} mode refuses at external and load-balancer IPs only what arrives; what this node sends passes`;
    return answer({ kind: 'pass' }, [...more, reason('refusedOnArrivalOnly', text)]);
  }
  if (decision.kind !== 'forward') return answer(decision, more);
  const { to, masquerade } = decision;
  return answer({ kind: 'forward', endpoints: service.endpoints[to], masquerade }, more);
}

function senderOf(
  table: ForwardingTable,
  flow: Flow,
  { frontend, traits }: { readonly frontend: Frontend; readonly traits: DataplaneTraits },
): Sender['sentBy'] {
  if (frontend.address === 'anyNodePortAddress' && isLoopbackProxied(table, flow)) return 'proxy';
  return isSentBySocket(flow, frontend, traits) ? 'socket' : 'packet';
}

/**
 * A socket that connects to the endpoint keeps its address; the proxy connects from an address of the node. Without a
 * listener of the proxy the kernel refuses at once.
 */
function decisionFor(decision: Decision, sentBy: Sender['sentBy']): Decision {
  if (sentBy === 'socket' && decision.kind === 'forward') return { ...decision, masquerade: false };
  if (sentBy !== 'proxy') return decision;
  return decision.kind === 'forward' ? { ...decision, masquerade: true } : { kind: 'reject' };
}

/** Whether this node itself sends to an external address that refuses. */
function isSentToRefusal(flow: Flow, { frontend }: Match): boolean {
  const isExternal = frontend.kind === 'externalIP' || frontend.kind === 'loadBalancerIP';
  const isSent = flow.from === 'node' && !flow.destinationIsLocal;
  return isExternal && isSent && frontend.decisions.node.kind !== 'forward';
}

interface Match {
  readonly service: ServiceForwarding;
  readonly frontend: Frontend;
}

interface Sender {
  readonly flow: Flow;
  readonly podDetector: PodDetector;
  /** Path to the endpoint: translated packets, the socket itself, or a connection of the agent. */
  readonly sentBy: 'packet' | 'socket' | 'proxy';
}

/** Finds the frontend of a flow. A frontend with an address wins over a NodePort, also for a VIP that is a local address. */
function findFrontend(table: ForwardingTable, flow: Flow): Match | undefined {
  return (
    findByAddress(table, flow, flow.destination) ??
    (nodePortObstacle(table, flow) === undefined ? findByAddress(table, flow, 'anyNodePortAddress') : undefined)
  );
}

function findByAddress(table: ForwardingTable, flow: Flow, address: Frontend['address']): Match | undefined {
  for (const service of table.services.values()) {
    if (service.protocol !== flow.protocol) continue;
    for (const frontend of service.frontends) {
      if (frontend.address === address && frontend.port === flow.destinationPort) return { service, frontend };
    }
  }
  return undefined;
}

type NodePortObstacle = 'notLocal' | 'loopback' | 'notSelected';

/** Returns the reason why no NodePort can answer at the flow's destination, or undefined if one can. */
function nodePortObstacle(table: ForwardingTable, flow: Flow): NodePortObstacle | undefined {
  if (!flow.destinationIsLocal) return 'notLocal';
  if (isLoopbackProxied(table, flow)) return undefined;
  if (isLoopback(flow.destination) && table.nodePortsOnLoopback !== 'kernel') return 'loopback';
  return table.nodePortCidrs.some((cidr) => cidrContains(cidr, flow.destination)) ? undefined : 'notSelected';
}

function isLoopback(address: IpAddress): boolean {
  return cidrContains(loopbackOf(ipFamilyOf(address)), address);
}

/** Explains a flow without a frontend: `traits` decide for cluster IPs, all other traffic passes. */
function explainNoService(table: ForwardingTable, flow: Flow, traits: DataplaneTraits): Explanation {
  const answer = (kind: 'reject' | 'drop' | 'pass', code: ReasonCode, text: string): Explanation => ({
    verdict: { kind },
    service: undefined,
    frontend: undefined,
    reasons: [reason(code, text)],
  });
  const target = `${flow.destination}:${flow.destinationPort}/${flow.protocol}`;
  if (ipFamilyOf(flow.destination) !== table.ipFamily) {
    return answer('pass', 'otherFamily', `${flow.destination} is not of the table's family ${table.ipFamily}`);
  }
  const guarded = (verdict: 'reject' | 'drop', code: ReasonCode, text: string): Explanation =>
    traits.unmatchedClusterIps === 'passed'
      ? answer('pass', code, `${text}; the ${traits.name} mode lets it pass`)
      : answer(verdict, code, text);
  const isAsked = ({ address, port }: Pick<Frontend, 'address' | 'port'>): boolean =>
    address === flow.destination && port === flow.destinationPort;
  const services = [...table.services.values()];
  const sameProtocol = services.filter(({ protocol }) => protocol === flow.protocol);
  const owner = services.find(({ frontends }) =>
    frontends.some(({ kind, address }) => kind === 'clusterIP' && address === flow.destination),
  );
  if (owner !== undefined) {
    return guarded(
      'reject',
      'unknownPortOfClusterIp',
      `${target}: the cluster IP of ${owner.service} has no such port`,
    );
  }
  const range = table.serviceCidrs.find((cidr) => cidrContains(cidr, flow.destination));
  if (range !== undefined) {
    return guarded(
      'drop',
      'unallocatedClusterIp',
      `${target}: no Service has this address of the ServiceCIDR ${range}`,
    );
  }
  const exempted = sameProtocol.find(({ lostFrontends }) =>
    lostFrontends.some(({ winner, frontend }) => winner === 'apiServer' && isAsked(frontend)),
  );
  if (exempted !== undefined) {
    return answer(
      'pass',
      'apiServerAddress',
      `${target} is an address of the API server; ${exempted.key} claims it and is not forwarded there`,
    );
  }
  const routed = sameProtocol.find(({ leftToRoute }) => leftToRoute?.some(isAsked) === true);
  if (routed !== undefined) {
    const text = `${target} is a load-balancer IP of ${routed.key} with ipMode Router; no endpoint on this node is usable`;
    const left = answer('pass', 'leftToRoute', text);
    return { ...left, reasons: [...left.reasons, ...describeSet(routed, 'Local', [])] };
  }
  const nodePort = findByAddress(table, flow, 'anyNodePortAddress')?.service.key;
  const obstacle = nodePortObstacle(table, flow);
  if (nodePort !== undefined && obstacle === 'notSelected') {
    const list = table.nodePortCidrs.join(', ') || 'none';
    return answer('pass', 'nodePortAddressNotSelected', `${target}: NodePorts answer only on ${list}`);
  }
  if (nodePort !== undefined && obstacle === 'loopback') {
    return answer('pass', 'nodePortOnLoopback', `${target}: ${loopbackText(table)}`);
  }
  const hint =
    nodePort === undefined ? '' : `; ${flow.destinationPort} is the NodePort of ${nodePort}, on addresses of this node`;
  return answer('pass', 'notAService', `${target} is no frontend of any Service${hint}`);
}

function loopbackText({ nodePortsOnLoopback, ipFamily }: ForwardingTable): string {
  if (nodePortsOnLoopback !== 'proxy') return 'NodePorts do not answer on loopback addresses';
  return `of the loopback addresses NodePorts answer on ${loopbackAddress(ipFamily)} alone, for TCP`;
}

function matchReasons(table: ForwardingTable, flow: Flow, { service, frontend }: Match): Reason[] {
  const target = `${flow.destination}:${flow.destinationPort}/${flow.protocol}`;
  const reasons =
    frontend.address === 'anyNodePortAddress'
      ? [reason('nodePort', `${target} is a local address and the NodePort of ${service.key}`)]
      : [reason('frontend', `${target} is the ${frontend.kind} of ${service.key}`)];
  const { address, port } = frontend;
  for (const other of table.services.values()) {
    const isLost = ({ winner, frontend: lost }: (typeof other.lostFrontends)[number]): boolean =>
      winner === service.key && lost.address === address && lost.port === port;
    if (other.lostFrontends.some(isLost)) {
      reasons.push(reason('frontendShared', `${other.key} claims it too and does not get it`));
    }
  }
  return reasons;
}

function decisionReasons(decision: Decision, { service, frontend }: Match, sender: Sender): readonly Reason[] {
  const isInternal = frontend.kind === 'clusterIP';
  const policy = isInternal ? service.policies.internal : service.policies.external;
  const policyReasons = reasonsOfPolicy(frontend, policy);
  switch (decision.kind) {
    case 'reject':
      return [
        ...policyReasons,
        reason('noUsableEndpoints', `no endpoint of ${service.key} is usable anywhere`),
        ...describeSet(service, 'Cluster', []),
      ];
    case 'drop':
      return [
        ...policyReasons,
        reason('noLocalEndpoints', 'there are usable endpoints, but none on this node'),
        ...describeSet(service, 'Local', []),
      ];
    case 'forward': {
      const endpoints = service.endpoints[decision.to];
      const shortCircuit = !isInternal && policy === 'Local' && decision.to === 'Cluster';
      return [
        ...policyReasons,
        ...(shortCircuit ? [shortCircuitReason(sender.flow.from)] : []),
        ...describeSet(service, decision.to, endpoints),
        ...sourceReasons(decision.masquerade, sender, { isInternal, policy, endpoints }),
        ...(service.sessionAffinity.kind === 'none'
          ? []
          : [
              reason(
                'sessionAffinity',
                `the same client keeps its endpoint for ${service.sessionAffinity.timeout / 1000} s`,
              ),
            ]),
      ];
    }
    default:
      return assertNever(decision);
  }
}

function reasonsOfPolicy({ kind, ipMode }: Frontend, policy: TrafficPolicy): readonly Reason[] {
  if (ipMode?.takenAs === 'Router')
    return [reason('ipModeRouter', 'a load-balancer IP with ipMode Router leads to endpoints on this node only')];
  const followed =
    kind === 'clusterIP'
      ? reason('internalTrafficPolicy', `cluster IPs follow internalTrafficPolicy ${policy}`)
      : reason('externalTrafficPolicy', `a ${kind} follows externalTrafficPolicy ${policy}`);
  if (ipMode === undefined) return [followed];
  const written = JSON.stringify(ipMode.written);
  return [reason('unknownIpMode', `this node does not know ipMode ${written} and takes it as VIP`), followed];
}

function shortCircuitReason(from: SourceClass): Reason {
  return from === 'node'
    ? reason('shortCircuitNode', 'this node itself may use endpoints on all nodes (short circuit)')
    : reason('shortCircuitPod', 'a pod may use endpoints on all nodes, as at the cluster IP (short circuit)');
}

interface SourceRule {
  readonly isInternal: boolean;
  readonly policy: 'Cluster' | 'Local';
}

function sourceReasons(
  masquerade: boolean,
  sender: Sender,
  { endpoints, ...rule }: SourceRule & { readonly endpoints: readonly Endpoint[] },
): readonly Reason[] {
  switch (sender.sentBy) {
    case 'socket':
      return [reason('sentBySocket', 'the socket itself goes to the endpoint: no packet is translated or masqueraded')];
    case 'proxy':
      return [
        reason('sentByProxy', 'the agent accepts and opens a connection of its own: the endpoint sees this node'),
      ];
    case 'packet': {
      const { source } = sender.flow;
      const text = `if ${source} itself is chosen, it is masqueraded (hairpin)`;
      const hairpin = endpoints.some(({ address }) => address === source) ? [reason('hairpin', text)] : [];
      return [sourceReason(masquerade, sender, rule), ...hairpin];
    }
    default:
      return assertNever(sender.sentBy);
  }
}

function sourceReason(masquerade: boolean, { flow, podDetector }: Sender, rule: SourceRule): Reason {
  if (!masquerade) return reason('sourceKept', `the endpoint sees ${flow.source}`);
  if (!rule.isInternal) {
    return rule.policy === 'Local'
      ? reason('masqueradeNode', "masqueraded: the node's own address may be one the endpoint cannot answer to")
      : reason('masqueradeExternal', 'masqueraded: with policy Cluster the answer must come back through this node');
  }
  return flow.from === 'pod' || podDetector.kind === 'none'
    ? reason('masqueradeAll', 'masqueraded: all traffic to cluster IPs is (masqueradeAll)')
    : reason(
        'masqueradeOffCluster',
        `masqueraded: this node does not detect the source as a pod${detectorText(podDetector)}`,
      );
}

/** Names the interface of the detector: a packet shows its address, but not its interface. */
function detectorText(detector: PodDetector): string {
  if (detector.kind === 'interface') return ` (pods are detected by interface ${detector.name})`;
  return detector.kind === 'interfacePrefix' ? ` (pods are detected by interface ${detector.prefix}*)` : '';
}

function reason(code: ReasonCode, text: string): Reason {
  return { code, text };
}
