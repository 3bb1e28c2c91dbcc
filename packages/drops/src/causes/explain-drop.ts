import {
  addressAndPort,
  endpointUse,
  explain,
  type Explanation,
  type ForwardingTable,
  type IpAddress,
  type Port,
  type ServiceForwarding,
  type ServicePortKey,
  sourceClassOf,
} from '@switchyard/core';
import type { PlacedDrop } from '../kernel/drop-counter.ts';
import type { DropPlace, PacketPlace } from '../kernel/kernel-functions.ts';
import { type CauseCode, causes, causesByReason, harmlessReasons } from './causes.ts';
import { type NodeView, type Subject, subjectOf, tcpFlagBits as flags } from './drop-subject.ts';
import { isEnding, isOfNoService } from './endpoint-use.ts';
import { refusalCause } from './refusal-cause.ts';
import { closedOnData, type Found, socketCause } from './socket-cause.ts';
import { isUntracked, isUntranslated, lostConnection } from './untracked-segment.ts';

/** Lost packets of a Service, and why. */
export interface Loss {
  readonly cause: CauseCode;
  /** One sentence that names the object and the fact that decided. */
  readonly why: string;
  /** Change that ends the loss. */
  readonly advice: string;
  /** `sure`: the kernel names the cause. `likely`: it follows from what the kernel names. */
  readonly certainty: 'sure' | 'likely';
  /** First of `services`. */
  readonly service: ServicePortKey | undefined;
  /** Service ports that the packet may belong to: several if only its endpoint is known. Empty for an address without a Service. */
  readonly services: readonly ServicePortKey[];
  /** Address that the client asked, or the endpoint if no more is known, such as `10.96.0.10:80/TCP`. */
  readonly frontend: string;
  /** Undefined if only counters show the loss. */
  readonly client: IpAddress | undefined;
  readonly direction: 'request' | 'answer';
  /** Namespace: the node's, or one of a pod; `socket`: a call of the application failed, so there was no packet; and hook of netfilter, if one is known. */
  readonly where: { readonly netns: 'node' | 'pod' | 'socket'; readonly hook: string | undefined };
  /** Reason of the kernel, without its prefix. */
  readonly reason: string;
  readonly count: number;
}

/** Explains dropped packets; undefined for those that are of no Service, and for those that lose nothing. */
export function explainDrop(drop: PlacedDrop, view: NodeView): Loss | undefined {
  if (harmlessReasons.test(drop.reason) || (drop.tcpFlags & flags.reset) !== 0) return undefined;
  const subject = subjectOf(drop, view);
  if (subject === undefined || isOfNoService(subject)) return undefined;
  const found = causeOf(subject);
  if (found === undefined) return undefined;
  const services = subject.services.map(({ key }) => key);
  return {
    ...found,
    advice: causes[found.cause],
    service: services[0],
    services,
    frontend: `${addressAndPort(subject.asked.address, subject.asked.port as Port)}/${drop.protocol}`, // a port of a packet
    client: subject.client,
    direction: subject.drop.direction,
    where: { netns: subject.isNode ? 'node' : 'pod', hook: drop.place.at },
    reason: drop.reason,
    count: drop.count,
  };
}

function causeOf(subject: Subject): Found | undefined {
  const { drop, asked, view } = subject;
  if (view.formerAddresses.has(asked.address)) {
    const why = `${asked.address} is no address of this node any more, and its clients still use its NodePort`;
    return { cause: 'addressGone', why, certainty: 'sure' };
  }
  const stale = staleness(subject);
  if (stale !== undefined) return stale;
  if (drop.reason === 'NETFILTER_DROP') return netfilterCause(subject);
  if (drop.reason === 'TC_INGRESS' && subject.isNode) return refusalOf(subject) ?? byReason(subject);
  if (isUnspecified(drop) && drop.place.by === 'tcp') return closedOnData(subject);
  if (drop.reason === 'TCP_ABORT_ON_DATA') return closedOnData(subject);
  if (drop.reason === 'NO_SOCKET') return socketCause(subject);
  if (drop.place.by === 'bridge') return bridgeCause(subject);
  return byReason(subject);
}

/** The port that a bridge does not send to: often the one the packet came from. */
function bridgeCause({ drop, client }: Subject): Found {
  return drop.direction === 'request' && client === drop.destination
    ? {
        cause: 'hairpinOff',
        why: `the Service led ${client} back to itself, and the bridge does not send to the port it came from`,
        certainty: 'sure',
      }
    : {
        cause: 'kernel',
        why: `a bridge did not send it on (${drop.source} to ${drop.destination}): state, VLANs, isolation of its port`,
        certainty: 'likely',
      };
}

function byReason(subject: Subject): Found {
  const { reason, place } = subject.drop;
  const cause = causesByPlace[place.by] ?? causesByReason[reason] ?? 'kernel';
  if (waysOfDeletedPods.has(cause) && subject.drop.direction === 'request' && isEnding(subject))
    return deleted(subject);
  if (cause === 'noRoute' && isUntranslated(subject)) return lostConnection;
  return {
    cause,
    why: `${kernelTexts[cause] ?? `the kernel dropped it: ${reason}`}${routeText(subject)}`,
    certainty: 'sure',
  };
}

/** Causes by which packets end that are sent to the address of a deleted pod; `kernel`, `reversePath`: the gateway sends them back. */
const waysOfDeletedPods: ReadonlySet<CauseCode> = new Set([
  'noRoute',
  'neighbour',
  'notAccepted',
  'reversePath',
  'kernel',
]);

function deleted({ drop, services, isEndpoint, isFormer }: Subject): Found {
  const endpoint = addressAndPort(drop.destination, drop.destinationPort as Port); // a port of a packet
  const symptom = `the kernel says ${drop.reason}`;
  return isFormer && isEndpoint
    ? {
        cause: 'staleRule',
        why: `${endpoint} is no endpoint of ${services[0]?.key} any more; ${symptom}`,
        certainty: 'likely',
      }
    : {
        cause: 'applicationGone',
        why: `the pod of ${endpoint} ends, and proxies may still lead there; ${symptom}`,
        certainty: 'likely',
      };
}

const causesByPlace: Partial<Record<DropPlace['by'], CauseCode>> = { route: 'noRoute', neighbour: 'neighbour' };

const kernelTexts: Partial<Record<CauseCode, string>> = {
  reversePath: 'reverse path filter: the route back to the sender leaves by another interface',
  noRoute: 'no route',
  neighbour: 'the next hop does not answer',
  neighbourTableFull: 'the kernel has no room for another neighbour',
  packetTooBig: 'larger than the MTU of the way out, and it must not be fragmented',
  acceptQueueFull: "the accept queue of the application's socket is full",
  receiveBufferFull: "the receive buffer of the application's socket is full",
};

/** Addresses of the packet as it was dropped, with its length where that matters. */
function routeText({ drop }: Subject): string {
  const length = drop.reason === 'PKT_TOO_BIG' ? `, ${drop.length} bytes` : '';
  return ` (${drop.source} to ${drop.destination}${length})`;
}

/** A flow that connection tracking leads to an endpoint which the Service does not have. */
function staleness({ drop, services, isEndpoint }: Subject): Found | undefined {
  const { flow } = drop;
  const [service] = services;
  if (flow === undefined || service === undefined || isEndpoint || drop.direction === 'answer') return undefined;
  if (!isTranslated(drop)) return undefined;
  const isKnown = endpointUse(service, { address: flow.endpoint, port: flow.endpointPort }) !== undefined;
  if (isKnown) return undefined;
  const endpoint = addressAndPort(flow.endpoint, flow.endpointPort as Port); // a port of a packet
  const symptom = `${endpoint} is no endpoint of ${service.key} any more; the kernel says ${drop.reason}`;
  const isNew = !flow.isConfirmed || (drop.tcpFlags & (flags.syn | flags.ack)) === flags.syn;
  return isNew
    ? { cause: 'staleRule', why: `a new flow was sent to a deleted endpoint: ${symptom}`, certainty: 'sure' }
    : { cause: 'staleFlow', why: `the flow still leads to a deleted endpoint: ${symptom}`, certainty: 'sure' };
}

/** Hooks at which connection tracking enters new flows; undefined: unknown. */
const entryHooks: ReadonlySet<PacketPlace | undefined> = new Set<PacketPlace | undefined>([
  'input',
  'postrouting',
  undefined,
]);

function netfilterCause(subject: Subject): Found | undefined {
  const { drop, view, isNode } = subject;
  const { at, by } = drop.place;
  if (!isNode)
    return {
      cause: 'otherRule',
      why: `a rule in the namespace of the pod dropped it${hookText(at)}`,
      certainty: 'sure',
    };
  if (by !== 'rule' && drop.flow === undefined && view.conntrack.full > 0) {
    return { cause: 'conntrackFull', why: 'connection tracking has no room for a new flow', certainty: 'sure' };
  }
  // Before Linux 6.16 the flow that was not entered is marked as confirmed.
  if (by !== 'rule' && drop.flow?.isAnswered === false && entryHooks.has(at) && view.conntrack.clashes > 0) {
    return {
      cause: 'conntrackClash',
      why: 'another flow to its endpoint has the same addresses and ports',
      certainty: 'sure',
    };
  }
  const refusal = refusalOf(subject);
  if (refusal !== undefined) return refusal;
  if (isUntracked(subject) && at === 'forward' && view.traits.invalidSegments === 'dropped') return lostConnection;
  return {
    cause: 'otherRule',
    why: `a rule that is not of the Service proxy dropped it${hookText(at)}${chainText(subject)}`,
    certainty: by === 'rule' ? 'sure' : 'likely',
  };
}

/** Whether connection tracking leads the flow to an endpoint: the proxy has accepted it. */
function isTranslated({ flow }: PlacedDrop): boolean {
  return flow !== undefined && (flow.endpoint !== flow.address || flow.endpointPort !== flow.port);
}

/** The dataplane's own refusal; undefined if it forwards the request. */
function refusalOf(subject: Subject): Found | undefined {
  if (subject.drop.direction === 'answer' || subject.isEndpoint || isTranslated(subject.drop)) return undefined;
  const { view, services } = subject;
  const now = refusalBy(subject, view.table, services);
  const { tableBefore } = view;
  if (tableBefore === undefined) return now === undefined ? undefined : { ...now, certainty: 'sure' };
  const servicesBefore = services.flatMap(({ key }) => tableBefore.services.get(key) ?? []);
  const before = refusalBy(subject, tableBefore, servicesBefore);
  if (now !== undefined) return { ...now, certainty: before?.cause === now.cause ? 'sure' : 'likely' };
  if (servicesBefore.length < services.length) {
    return { cause: 'notYetApplied', why: 'this node had not applied the Service yet', certainty: 'likely' };
  }
  return before === undefined
    ? undefined
    : { ...before, why: `${before.why} (until a moment ago)`, certainty: 'likely' };
}

/** Cause, if a table refuses the request. */
function refusalBy(
  subject: Subject,
  table: ForwardingTable,
  services: readonly ServiceForwarding[],
): Pick<Loss, 'cause' | 'why'> | undefined {
  const explanation = explainRequest(subject, table, services);
  const { kind } = explanation.verdict;
  return kind === 'reject' || kind === 'drop' ? refusalCause(explanation) : undefined;
}

/** Where to look for the rule. */
function chainText({ drop, view }: Subject): string {
  const { at } = drop.place;
  const chains = at === undefined ? [] : (view.chainsAt?.(at, view.table.ipFamily) ?? []);
  if (chains.length === 0) return '';
  return chains.length === 1 ? `: nftables chain ${chains[0]}` : `, in one of the nftables chains ${chains.join(', ')}`;
}

function hookText(hook: string | undefined): string {
  return hook === undefined ? '' : ` at the hook ${hook}`;
}

/** Explains the request by a table. Only its own Services count, so the table is cut down to them. */
function explainRequest(
  { drop, view, asked, client }: Subject,
  table: ForwardingTable,
  services: readonly ServiceForwarding[],
): Explanation {
  const isNodeAddress = view.nodeAddresses.has(client);
  const flow = {
    from: sourceClassOf(table, client, isNodeAddress),
    // A packet that was dropped was not translated at its socket.
    isSentHere: false,
    source: client,
    destination: asked.address,
    destinationPort: asked.port as Port, // a port of a packet
    protocol: drop.protocol,
    destinationIsLocal: view.nodeAddresses.has(asked.address),
  };
  const own = new Map(services.map((service) => [service.key, service]));
  return explain({ ...table, services: own }, flow, view.traits);
}

function isUnspecified({ reason }: PlacedDrop): boolean {
  return reason === 'NOT_SPECIFIED';
}
