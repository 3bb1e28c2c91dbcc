import { assertNever, cidrContains, type Flow, type IpAddress, parseCidr, UsageError } from '@switchyard/core';
import type { FakeRule, MaskedMark, Match, RecentMatch, Wanted } from './rule-types.ts';

/** A first packet on its way. */
export interface Packet {
  readonly flow: Flow;
  /** Decides what chance decides, `true` for "matches". */
  readonly choose: () => boolean;
  /** Clients that lists of `-m recent` remember. */
  readonly recent: ReadonlyMap<string, ReadonlySet<string>>;
  /** Lists that this packet's sender was put into. */
  readonly remembered: string[];
  destination: IpAddress;
  port: string;
  mark: number;
  isDnat: boolean;
  isMasqueraded: boolean;
}

/** Whether all of a rule's matches hold. As in the kernel, a match behind one that fails is not looked at. */
export function matchesPacket(rule: FakeRule, packet: Packet): boolean {
  const { flow } = packet;
  if (rule.outInterface !== undefined) {
    throw new UsageError(
      'trace.out-interface',
      `the tracer does not know by which interface a packet leaves: ${rule.text}`,
    );
  }
  return (
    holds(rule.source, (cidr) => cidrContains(parseCidr(cidr), flow.source)) &&
    holds(rule.destination, (cidr) => cidrContains(parseCidr(cidr), packet.destination)) &&
    holds(rule.inInterface, (name) => isInterface(name, flow.incomingInterface ?? '')) &&
    holds(rule.protocol, (protocol) => protocol === flow.protocol.toLowerCase()) &&
    rule.matches.every((match) => matches(match, packet))
  );
}

function holds<T>(wanted: Wanted<T> | undefined, test: (value: T) => boolean): boolean {
  return wanted === undefined || test(wanted.value) !== wanted.isNegated;
}

/** A name that ends in `+` stands for all that begin so. */
function isInterface(pattern: string, name: string): boolean {
  return pattern.endsWith('+') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

function matches(match: Match, packet: Packet): boolean {
  switch (match.kind) {
    case 'comment':
    case 'nfacct':
      return true;
    case 'tcp':
    case 'udp':
    case 'sctp':
      if (match.sourcePort !== undefined) {
        throw new UsageError('trace.source-port', 'a flow has no source port for the tracer to compare');
      }
      return holds(match.destinationPort, (range) => isInRange(range, Number(packet.port)));
    case 'mark':
      return holds(match.mark, ({ value, mask }: MaskedMark) => (packet.mark & mask) >>> 0 === value);
    case 'conntrack':
      return holds(match.states, (states) => states.some((state) => isInState(state, packet)));
    case 'addrtype':
      return (
        holds(match.source, (type) => isOfType(type, packet.flow.from === 'node')) &&
        holds(match.destination, (type) => isOfType(type, isDestinationLocal(packet)))
      );
    case 'statistic':
      return match.probability >= 2 ** 31 || (match.probability > 0 && packet.choose());
    case 'recent':
      return isRecent(match, packet);
    default:
      return assertNever(match);
  }
}

function isInRange(range: string, port: number): boolean {
  const [first = 0, last = first] = range.split(':').map(Number);
  return port >= first && port <= last;
}

/** It is the first packet of its connection, and no other connection expects it. */
function isInState(state: string, packet: Packet): boolean {
  if (state === 'DNAT') return packet.isDnat;
  if (state === 'SNAT') return packet.isMasqueraded;
  return state === 'NEW';
}

function isOfType(type: string, isLocal: boolean): boolean {
  if (type === 'LOCAL') return isLocal;
  throw new UsageError('trace.address-type', `the tracer does not know addresses of type ${type}`);
}

/** Endpoints are taken to be elsewhere. */
function isDestinationLocal({ flow, isDnat }: Packet): boolean {
  return !isDnat && flow.destinationIsLocal;
}

function isRecent({ action, name }: RecentMatch, packet: Packet): boolean {
  if (action.value === 'rcheck')
    return (packet.recent.get(name)?.has(packet.flow.source) === true) !== action.isNegated;
  packet.remembered.push(name);
  return !action.isNegated;
}
