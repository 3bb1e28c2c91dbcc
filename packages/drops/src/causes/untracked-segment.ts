import { type Subject, tcpFlagBits as flags } from './drop-subject.ts';
import type { Found } from './socket-cause.ts';

/** Cause of a segment whose connection the node has lost. */
export const lostConnection: Found = {
  cause: 'invalidSegment',
  why: 'connection tracking knows no connection with this TCP segment',
  certainty: 'likely',
};

/** Whether it is a segment of a connection that began before, and the node's connection tracking has no flow of it. */
export function isUntracked({ drop, isNode }: Subject): boolean {
  return isNode && drop.protocol === 'TCP' && (drop.tcpFlags & flags.syn) === 0 && drop.flow === undefined;
}

/** Whether such a segment still has the address of its Service behind the hook that translates. */
export function isUntranslated(subject: Subject): boolean {
  const { drop, isEndpoint, services } = subject;
  return isUntracked(subject) && drop.direction === 'request' && !isEndpoint && services.length > 0;
}
