import { type ClientRequest, type IncomingMessage, request as httpRequest, type ServerResponse } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { addressAndPort, messageOf } from '@switchyard/core';
import type { Connect } from '../namespace-sockets.ts';
import { type JsonObject, listAt, numberAt, stringAt } from '../json.ts';
import { pods } from '../resources/pods.ts';
import { badRequest, notFound, serviceUnavailable } from '../status-error.ts';
import type { Store } from '../store.ts';
import type { ServerContext } from './handler.ts';
import { setCommonHeaders } from './messages.ts';

/** Target of a request to `pods/proxy`. */
export interface ProxyPath {
  readonly namespace: string;
  /** `name`, `name:port` or `scheme:name:port`. */
  readonly id: string;
  /** Path of the request to the pod; '' without a slash. */
  readonly path: string;
}

/** One request with its answer. */
export interface ProxyExchange {
  readonly url: URL;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly signal: AbortSignal;
}

const pattern = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)\/proxy(\/.*)?$/;

/** Reads `/api/v1/namespaces/NAMESPACE/pods/POD/proxy/…`; undefined for any other path. */
export function parseProxyPath(path: string): ProxyPath | undefined {
  const [, namespace, id, rest = ''] = pattern.exec(path) ?? [];
  if (namespace === undefined || id === undefined) return undefined;
  return { namespace: decodeURIComponent(namespace), id: decodeURIComponent(id), path: rest };
}

/**
 * Passes a request on to a pod and its answer back, as kube-apiserver does: any method, both bodies as streams, without the
 * client's credentials. Does not pass on upgrades. Rejects with the Status for the client.
 */
export async function proxyToPod(context: ServerContext, where: ProxyPath, exchange: ProxyExchange): Promise<void> {
  const { url, response, signal } = exchange;
  const target = locate(context.store, where);
  if (where.path === '') {
    setCommonHeaders(response);
    response.writeHead(301, { Location: `${url.pathname}/${url.search}` }).end();
    return;
  }
  const socket = await connectTo(context.connect, target, signal);
  await passOn(exchange, target, `${where.path}${url.search}`, socket);
}

interface Target {
  readonly scheme: 'http' | 'https';
  readonly address: string;
  readonly port: number;
}

function locate(store: Store, { namespace, id }: ProxyPath): Target {
  const parts = id.split(':');
  const [scheme = '', name = '', given = ''] =
    parts.length === 3 ? parts : parts.length < 3 ? ['', ...parts] : ['', '', ''];
  if (name === '' || !['', 'http', 'https'].includes(scheme))
    throw badRequest(`invalid pod request ${JSON.stringify(id)}`);
  const pod = store.get(pods, namespace, name)?.value;
  if (pod === undefined) throw notFound(pods, name);
  const address = stringAt(pod, 'status', 'podIP');
  if (isIP(address) === 0 || /^(127\.|169\.254\.|::1$|fe80:)/.test(address)) throw badRequest('address not allowed');
  const otherwise = scheme === 'https' ? 443 : 80;
  const port = given === '' ? (firstPort(pod) ?? otherwise) : Number(given);
  if (!Number.isInteger(port)) throw unreachable(`dial tcp: lookup tcp/${given}: unknown port`);
  return { scheme: scheme === 'https' ? 'https' : 'http', address, port };
}

function firstPort(pod: JsonObject): number | undefined {
  const ports = listAt(pod, 'spec', 'containers').map((container) => listAt(container, 'ports')[0]);
  return numberAt(
    ports.find((port) => port !== undefined),
    'containerPort',
  );
}

const goTexts: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connect: connection refused',
  EHOSTUNREACH: 'connect: no route to host',
  ENETUNREACH: 'connect: network is unreachable',
  ETIMEDOUT: 'connect: connection timed out',
};

async function connectTo(connect: Connect, { address, port }: Target, signal: AbortSignal): Promise<Socket> {
  try {
    return await connect({ host: address, port }, signal);
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    const { code = '' } = error as { readonly code?: string };
    throw unreachable(`dial tcp ${addressAndPort(address, port)}: ${goTexts[code] ?? messageOf(error)}`);
  }
}

function unreachable(why: string): Error {
  return serviceUnavailable(`error trying to reach service: ${why}`);
}

/** Resolves when the answer is complete or the client has disconnected. */
function passOn(exchange: ProxyExchange, target: Target, path: string, socket: Socket): Promise<void> {
  const { request, response, signal, url } = exchange;
  const { scheme, address, port } = target;
  const headers = {
    ...withoutOwn(request.headers),
    host: addressAndPort(address, port),
    'x-forwarded-uri': url.pathname,
    'x-forwarded-host': request.headers.host ?? '',
    'x-forwarded-proto': 'http',
  };
  const options = { path, method: request.method ?? 'GET', headers, signal };
  const outgoing: ClientRequest =
    scheme === 'http'
      ? httpRequest({ ...options, createConnection: () => socket })
      : httpsRequest({ ...options, createConnection: () => connectTls({ socket, rejectUnauthorized: false }) });
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void => {
      socket.destroy();
      if (!response.headersSent) return reject(unreachable(error.message === 'socket hang up' ? 'EOF' : error.message));
      response.destroy();
      resolve();
    };
    outgoing.once('error', fail);
    outgoing.once('response', (answer) => {
      setCommonHeaders(response);
      response.writeHead(answer.statusCode ?? 502, withoutOwn(answer.headers));
      answer.once('error', fail);
      answer.pipe(response).once('close', resolve);
    });
    request.once('error', fail);
    request.pipe(outgoing);
  });
}

/** Headers that belong to one connection, or to the client and this server only. */
const own = new Set(
  'authorization connection host keep-alive proxy-authenticate proxy-authorization te trailer transfer-encoding upgrade'.split(
    ' ',
  ),
);

function withoutOwn(headers: IncomingMessage['headers']): Record<string, string | string[]> {
  const kept = Object.entries(headers).filter(([name, value]) => !own.has(name) && value !== undefined);
  return Object.fromEntries(kept) as Record<string, string | string[]>; // without undefined values
}
