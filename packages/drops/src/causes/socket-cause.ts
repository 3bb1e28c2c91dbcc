import { addressAndPort, type Port } from '@switchyard/core';
import { type Subject, tcpFlagBits as flags } from './drop-subject.ts';
import { isEnding, isReady } from './endpoint-use.ts';
import type { Loss } from './explain-drop.ts';
import { isUntranslated, lostConnection } from './untracked-segment.ts';

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
  const { drop } = subject;
  if (drop.direction === 'answer') return answerCause(subject);
  const endpoint = addressAndPort(drop.destination, drop.destinationPort as Port); // a port of a packet
  const handshake = drop.tcpFlags & (flags.syn | flags.ack);
  if (drop.protocol === 'TCP' && handshake !== flags.syn) {
    if ((drop.tcpFlags & flags.data) === 0) return undefined; // the end of a connection
    if (isUntranslated(subject)) return lostConnection;
    return {
      cause: 'applicationGone',
      why: `no socket of ${endpoint} has this connection any more`,
      certainty: 'sure',
    };
  }
  if (isEnding(subject)) {
    const why = `${endpoint} no longer listens, and proxies may still lead there: its pod ends`;
    return { cause: 'applicationGone', why, certainty: 'sure' };
  }
  const { asked, isEndpoint, isNode } = subject;
  if (isNode && !isEndpoint && asked.address === drop.destination && asked.port === drop.destinationPort) {
    const why = `no rule of the node's proxy took it at ${endpoint}: the node has not applied ${subject.services[0]?.key ?? 'the Service'}`;
    return { cause: 'notYetApplied', why, certainty: 'likely' };
  }
  return { cause: 'noListener', why: `nothing listens on ${endpoint}`, certainty: 'sure' };
}

/** No socket of the client took the answer. Mostly the client has closed; where sockets lead to endpoints themselves, always. */
function answerCause(subject: Subject): Found | undefined {
  const { drop, asked, services, client, isEndpoint, view } = subject;
  if (!isEndpoint || view.traits.translation === 'sockets') return undefined;
  const isFirst = (drop.tcpFlags & (flags.syn | flags.ack)) === (flags.syn | flags.ack);
  // The proxy deletes UDP flows of endpoints that end, and their late answers are not translated either.
  if (drop.protocol === 'UDP' ? !isReady(subject) : !isFirst) return undefined;
  const from = addressAndPort(asked.address, asked.port as Port); // a port of a packet
  const of = services.map(({ key }) => key).join(', ');
  const doubt = drop.protocol === 'UDP' ? ', or it had closed its socket' : '';
  const why = `${client} got an answer from ${from} itself, an endpoint of ${of}, and not from the address that it asked${doubt}`;
  return { cause: 'answerNotTranslated', why, certainty: 'likely' };
}
