import { addressAndPort, HostError, type IpAddress, type Millis, millis, messageOf, type Port } from '@switchyard/core';
import {
  connectionsPath,
  type ConnectionsReply,
  nodePath,
  nodeQuery,
  type NodeQuestion,
  type NodeReply,
} from './protocol.ts';

/** Time for an answer beyond the requested wait. */
const answerTime = 3000;

/** The health port of one node. */
export interface NodePlace {
  readonly address: IpAddress;
  readonly port: Port;
}

/** Asks the agent of a node. Rejects with `HostError` if it gives no answer. */
export function askNode(place: NodePlace, question: NodeQuestion, signal: AbortSignal): Promise<NodeReply> {
  const timeout = millis(question.timeout + answerTime);
  return ask<NodeReply>({ place, path: `${nodePath}?${nodeQuery(question)}`, timeout }, signal);
}

/** Counts connections on a node. Rejects with `HostError` if it gives no answer. */
export function askConnections(
  place: NodePlace,
  { addresses, ports }: { readonly addresses: readonly IpAddress[]; readonly ports: ReadonlySet<number> },
  signal: AbortSignal,
): Promise<ConnectionsReply> {
  const query = new URLSearchParams({ pod: addresses.join(','), ports: [...ports].join(',') });
  return ask<ConnectionsReply>({ place, path: `${connectionsPath}?${query}`, timeout: millis(answerTime) }, signal);
}

interface Request {
  readonly place: NodePlace;
  readonly path: string;
  readonly timeout: Millis;
}

async function ask<T>({ place, path, timeout }: Request, signal: AbortSignal): Promise<T> {
  const url = `http://${addressAndPort(place.address, place.port)}${path}`;
  let response: Response;
  try {
    response = await fetch(url, { signal: AbortSignal.any([signal, AbortSignal.timeout(timeout)]) });
    if (response.ok) return (await response.json()) as T; // of our own agent
  } catch (error) {
    signal.throwIfAborted();
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    throw new HostError('drain.unreachable', `${url.split('?')[0]}: ${messageOf(cause)}`, { cause: error });
  }
  const [text = ''] = (await response.text()).split('\n');
  const hint = response.status === 404 ? '; does its agent run with --switchyard-drain-gate?' : '';
  throw new HostError('drain.refused', `${url.split('?')[0]} answered ${response.status} ${text}${hint}`);
}
