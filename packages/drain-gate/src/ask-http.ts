import { Agent, get, type RequestOptions } from 'node:http';
import { addressAndPort, HostError, type IpAddress, type Millis, millis, messageOf, type Port } from '@switchyard/core';
import {
  connectionsPath,
  connectionsQuery,
  type ConnectionsReply,
  type CountedPod,
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
export function askConnections(place: NodePlace, pod: CountedPod, signal: AbortSignal): Promise<ConnectionsReply> {
  const path = `${connectionsPath}?${connectionsQuery(pod)}`;
  return ask<ConnectionsReply>({ place, path, timeout: millis(answerTime) }, signal);
}

interface Request {
  readonly place: NodePlace;
  readonly path: string;
  readonly timeout: Millis;
}

/** One connection to each node; a node closes it when it was idle for a while. */
const agent = new Agent({ keepAlive: true, maxSockets: 2 });

async function ask<T>({ place, path, timeout }: Request, signal: AbortSignal): Promise<T> {
  const { address, port } = place;
  const what = `http://${addressAndPort(address, port)}${path.split('?')[0]}`;
  let answer: HttpReply;
  try {
    answer = await requestText({ host: address, port, path, agent, timeout, signal });
  } catch (cause) {
    signal.throwIfAborted();
    throw new HostError('drain.unreachable', `${what}: ${messageOf(cause)}`, { cause });
  }
  if (answer.status === 200) return JSON.parse(answer.text) as T; // of our own agent
  const hint = answer.status === 404 ? '; does its agent run with --switchyard-drain-gate?' : '';
  throw new HostError('drain.refused', `${what} answered ${answer.status} ${answer.text.split('\n')[0]}${hint}`);
}

interface HttpReply {
  readonly status: number;
  readonly text: string;
}

/** A node may close an idle connection at the moment of a request: that is sent again, over a new one. */
async function requestText(options: RequestOptions): Promise<HttpReply> {
  try {
    return await requestOnce(options);
  } catch (error) {
    if (!(error instanceof StaleConnection)) throw error;
    return requestOnce({ ...options, agent: false });
  }
}

class StaleConnection extends Error {}

function requestOnce(options: RequestOptions): Promise<HttpReply> {
  return new Promise((resolve, reject) => {
    const request = get(options, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (piece: string) => (text += piece));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
      response.on('error', reject);
    });
    request.on('timeout', () => request.destroy(new Error(`no answer within ${options.timeout} ms`)));
    request.on('error', (error: NodeJS.ErrnoException) =>
      reject(request.reusedSocket && error.code === 'ECONNRESET' ? new StaleConnection(error.message) : error),
    );
  });
}
