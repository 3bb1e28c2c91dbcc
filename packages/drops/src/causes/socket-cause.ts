import { addressAndPort, type Port, type ServiceForwarding } from '@switchyard/core';
import { type Subject, tcpFlagBits as flags } from './drop-subject.ts';
import type { Loss } from './explain-drop.ts';
import type { ServerPlace } from './service-index.ts';

/** Cause, sentence and certainty of a loss. */
export type Found = Pick<Loss, 'cause' | 'why' | 'certainty'>;

/** The application closed the connection, and data came. A segment without data is the end of a connection. */
export function closedOnData({ drop }: Subject): Found | undefined {
  if ((drop.tcpFlags & flags.data) === 0) return undefined;
  if (drop.direction === 'answer') return undefined; // the client no longer wants it
  const endpoint = addressAndPort(drop.destination, drop.destinationPort as Port); // a port of a packet
  return { cause: 'applicationGone', why: `${endpoint} had closed the connection when data came`, certainty: 'sure' };
}

/** No socket took the packet. */
export function socketCause(subject: Subject): Found | undefined {
  const { drop, asked, services, client, isEndpoint } = subject;
  const endpoint = addressAndPort(drop.destination, drop.destinationPort as Port); // a port of a packet
  const handshake = drop.tcpFlags & (flags.syn | flags.ack);
  if (drop.direction === 'answer') {
    // Otherwise the client has closed.
    if (handshake !== (flags.syn | flags.ack) || !isEndpoint) return undefined;
    const from = addressAndPort(asked.address, asked.port as Port); // a port of a packet
    const of = services.map(({ key }) => key).join(', ');
    const why = `${client} got an answer from ${from} itself, an endpoint of ${of}, and not from the address that it asked`;
    return { cause: 'answerNotTranslated', why, certainty: 'likely' };
  }
  if (drop.protocol === 'TCP' && handshake !== flags.syn) {
    if ((drop.tcpFlags & flags.data) === 0) return undefined; // the end of a connection
    return {
      cause: 'applicationGone',
      why: `no socket of ${endpoint} has this connection any more`,
      certainty: 'sure',
    };
  }
  if (isEndpoint && !isUsedByProxies(subject)) return undefined; // such as a readiness probe, before the application listens
  return { cause: 'noListener', why: `nothing listens on ${endpoint}`, certainty: 'sure' };
}

/** Whether a proxy of any node may choose the endpoint, or might a moment ago. */
function isUsedByProxies({ asked, services, view }: Subject): boolean {
  const before = services.flatMap(({ key }) => view.tableBefore?.services.get(key) ?? []);
  return [...services, ...before].some((service) => mayLeadTo(service, asked));
}

/** A terminating endpoint is used if there is no ready one, for policy Local on its node (KEP-1669). */
function mayLeadTo({ knownEndpoints, policies }: ServiceForwarding, { address, port }: ServerPlace): boolean {
  const endpoint = knownEndpoints.find((one) => one.address === address && one.port === port);
  if (endpoint === undefined || endpoint.ready || !endpoint.serving) return endpoint?.ready ?? false;
  const others = knownEndpoints.filter(({ ready }) => ready);
  const isLocal = policies.internal === 'Local' || policies.external === 'Local';
  return others.length === 0 || (isLocal && !others.some(({ nodeName }) => nodeName === endpoint.nodeName));
}
