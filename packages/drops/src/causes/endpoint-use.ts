import { endpointUse } from '@switchyard/core';
import { type Subject, tcpFlagBits } from './drop-subject.ts';

/**
 * Whether a first packet straight to an endpoint is of no Service: no proxy may choose the endpoint, or it did so until a moment ago and the
 * node itself sends. Such as readiness probes of a pod that does not listen yet, or that ends.
 */
export function isOfNoService(subject: Subject): boolean {
  const { drop, client, isEndpoint, isFormer, view } = subject;
  if (!isEndpoint || drop.direction === 'answer') return false;
  if (drop.protocol === 'TCP' && (drop.tcpFlags & tcpFlagBits.syn) === 0) return false; // the connection began before
  const isOfNode = view.nodeAddresses.has(client);
  if (isOfNode && drop.hops !== view.firstHops) return false; // the node sent it on with its own address, such as to a NodePort
  return (isFormer && isOfNode) || !isUsedByProxies(subject);
}

function isUsedByProxies({ asked, services, view }: Subject): boolean {
  const tables = [view.tableThen, ...(view.tableBefore === undefined ? [] : [view.tableBefore])];
  const known = tables.flatMap((table) => services.flatMap(({ key }) => table.services.get(key) ?? []));
  return known.some((service) => endpointUse(service, asked)?.isUsed === true);
}

/** Whether the endpoint was deleted, or its pod terminates. */
export function isEnding({ drop, services, isFormer }: Subject): boolean {
  const place = { address: drop.destination, port: drop.destinationPort };
  return isFormer || services.some((service) => endpointUse(service, place)?.isEnding === true);
}

/** Whether proxies may choose the endpoint, and its pod does not terminate. */
export function isReady({ asked, services, isFormer }: Subject): boolean {
  const uses = services.map((service) => endpointUse(service, asked));
  return !isFormer && uses.some((use) => use?.isUsed === true && !use.isEnding);
}
