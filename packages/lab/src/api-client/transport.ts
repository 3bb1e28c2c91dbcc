import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { ApiServerError, messageOf } from '@switchyard/core';

/** One HTTP exchange with the API server. `path` includes the query. */
export interface ApiRequest {
  readonly method: string;
  readonly path: string;
  /** Sent as JSON; undefined means no body. */
  readonly body: unknown;
  readonly contentType?: string;
  /** A 404 is the answer undefined, not an error. */
  readonly isAbsenceFine?: boolean;
}

/** Connections to one API server. */
export interface ApiTransport {
  /** The parsed body of a 2xx answer; anything else rejects with `ApiServerError`. */
  request(request: ApiRequest, signal: AbortSignal): Promise<unknown>;
  /** The lines of a 200 answer, as they come; ends when the server ends the body cleanly. */
  lines(path: string, signal: AbortSignal): AsyncGenerator<unknown>;
  close(): void;
}

interface TransportOptions {
  readonly url: string;
  readonly token?: string;
  readonly name?: string;
  readonly agent?: Agent;
}

/** Makes a transport; nothing is connected yet. */
export function createTransport(options: TransportOptions): ApiTransport {
  const base = new URL(options.url);
  const agent = options.agent ?? new Agent({ keepAlive: true });
  const open = base.protocol === 'https:' ? httpsRequest : httpRequest;
  const send = (request: ApiRequest, signal: AbortSignal): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const text = request.body === undefined ? undefined : JSON.stringify(request.body);
      const headers: Record<string, string | number> = {
        accept: 'application/json',
        'user-agent': options.name ?? 'switchyard-lab',
      };
      if (options.token !== undefined) headers['authorization'] = `Bearer ${options.token}`;
      if (text !== undefined) {
        headers['content-type'] = request.contentType ?? 'application/json';
        headers['content-length'] = Buffer.byteLength(text);
      }
      const { method } = request;
      const outgoing = open(new URL(request.path, base), { agent, method, headers, signal });
      outgoing.once('response', resolve);
      outgoing.once('error', (cause) => reject(signal.aborted ? signal.reason : unreachable(request, cause)));
      outgoing.end(text);
    });
  return {
    request: async (request, signal) => {
      const response = await send(request, signal);
      const text = await readText(response, request, signal);
      const status = response.statusCode ?? 0;
      if (status === 404 && request.isAbsenceFine === true) return undefined;
      if (status < 200 || status > 299) throw refused(request, status, text);
      return JSON.parse(text);
    },
    lines: (path, signal) => readLines({ method: 'GET', path, body: undefined }, send, signal),
    close: () => agent.destroy(),
  };
}

async function* readLines(
  request: ApiRequest,
  send: (request: ApiRequest, signal: AbortSignal) => Promise<IncomingMessage>,
  signal: AbortSignal,
): AsyncGenerator<unknown> {
  const response = await send(request, signal);
  if (response.statusCode !== 200) {
    throw refused(request, response.statusCode ?? 0, await readText(response, request, signal));
  }
  let rest = '';
  response.setEncoding('utf8');
  try {
    for await (const chunk of response) {
      const parts = (rest + (chunk as string)).split('\n');
      rest = parts.pop() ?? '';
      for (const line of parts) if (line !== '') yield JSON.parse(line);
    }
  } catch (cause) {
    throw signal.aborted ? signal.reason : unreachable(request, cause);
  }
}

async function readText(response: IncomingMessage, request: ApiRequest, signal: AbortSignal): Promise<string> {
  response.setEncoding('utf8');
  let text = '';
  try {
    for await (const chunk of response) text += chunk as string;
  } catch (cause) {
    throw signal.aborted ? signal.reason : unreachable(request, cause);
  }
  return text;
}

function unreachable(request: ApiRequest, cause: unknown): ApiServerError {
  const detail = messageOf(cause);
  return new ApiServerError(
    'api.unreachable',
    `${request.method} ${request.path}: no complete answer from the API server (${detail}); try again later`,
    { cause, isRetryable: true },
  );
}

function refused(request: ApiRequest, status: number, text: string): ApiServerError {
  const { reason, message } = parseStatus(text);
  const code = reason === undefined ? `api.http-${status}` : `api.${kebab(reason)}`;
  const isRetryable = status === 409 || status === 429 || status >= 500;
  return new ApiServerError(code, `${request.method} ${request.path}: the API server answered ${status}: ${message}`, {
    isRetryable,
    status,
  });
}

function parseStatus(text: string): { readonly reason: string | undefined; readonly message: string } {
  try {
    const body = JSON.parse(text) as { readonly reason?: string; readonly message?: string };
    return { reason: body.reason, message: body.message ?? text };
  } catch {
    return { reason: undefined, message: text.trim() };
  }
}

function kebab(reason: string): string {
  return reason.replaceAll(/(?<=[a-z])(?=[A-Z])/g, '-').toLowerCase();
}
