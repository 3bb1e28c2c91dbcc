import * as http from 'node:http';
import * as https from 'node:https';
import type { V1Service } from '@kubernetes/client-node';
import { ApiServerError, type Clock, messageOf, type Millis, seconds } from '@switchyard/core';
import type { ApiClient, ApiServerConnection } from '@switchyard/core/kubernetes';
import { type LoadBalancerService, serviceFromApi } from '../cluster/cluster-objects.ts';
import { type DesiredStatus, statusPatch } from './desired-status.ts';

/** What writing a status needs. */
export interface StatusWriterOptions {
  readonly connection: ApiServerConnection;
  readonly client: ApiClient;
  readonly clock: Clock;
}

/** How a write ended. `gone`: the Service was deleted in the meantime, which is as good. */
export type StatusWrite = { readonly status: 'unchanged' | 'written' | 'gone' };

/** Writes `status` of Services. Nothing else of the controller writes to the API server. */
export interface StatusWriter {
  /**
   * Makes the Service's status say what is desired, by a merge patch on `/status`. On a conflict the Service is read
   * again and the patch made anew. Rejects with `ApiServerError` when the server refuses, or conflicts do not end.
   */
  write(service: LoadBalancerService, desired: DesiredStatus, signal: AbortSignal): Promise<StatusWrite>;
}

const maxAttempts = 5;
const answerLimit: Millis = seconds(30);

/** A writer on one API server. */
export function newStatusWriter({ connection, client, clock }: StatusWriterOptions): StatusWriter {
  return {
    async write(service, desired, signal) {
      let current = service;
      for (let attempt = 1; attempt <= maxAttempts; attempt++) {
        const patch = statusPatch(current, desired, isoSeconds(clock.now()));
        if (patch === undefined) return { status: attempt === 1 ? 'unchanged' : 'written' };
        const answer = await patchStatus(connection, pathOf(current), patch, signal);
        if (answer.status === 404) return { status: 'gone' };
        if (answer.status === 200) return { status: 'written' };
        if (answer.status !== 409) throw refused(pathOf(current), answer);
        const fresh = await readService(client, current, signal);
        if (fresh === undefined) return { status: 'gone' };
        current = fresh;
      }
      throw new ApiServerError(
        'api.conflict',
        `PATCH ${pathOf(current)}/status: ${maxAttempts} times someone else changed the Service first; will be tried again`,
        { isRetryable: true, status: 409 },
      );
    },
  };
}

function pathOf({ record }: LoadBalancerService): string {
  const [namespace = '', name = ''] = record.key.split('/');
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/services/${encodeURIComponent(name)}`;
}

async function readService(
  client: ApiClient,
  service: LoadBalancerService,
  signal: AbortSignal,
): Promise<LoadBalancerService | undefined> {
  const request = { path: pathOf(service), query: new URLSearchParams() };
  try {
    const text = await client.get(
      request,
      async (body) => {
        const chunks: Buffer[] = [];
        for await (const chunk of body.chunks()) chunks.push(chunk);
        return Buffer.concat(chunks).toString('utf8');
      },
      signal,
    );
    return serviceFromApi(JSON.parse(text) as V1Service); // the path says what it is
  } catch (error) {
    if (error instanceof ApiServerError && error.status === 404) return undefined;
    throw error;
  }
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

/** One PATCH on a connection of its own: writes are rare. */
async function patchStatus(
  connection: ApiServerConnection,
  path: string,
  patch: unknown,
  signal: AbortSignal,
): Promise<Answer> {
  const { url, tls, credentials } = connection;
  const authorization = await credentials.authorization(signal);
  const body = JSON.stringify(patch);
  const request = (url.protocol === 'https:' ? https : http).request({
    protocol: url.protocol,
    hostname: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port,
    path: `${url.pathname.replace(/\/$/, '')}${path}/status`,
    method: 'PATCH',
    agent: false,
    signal: AbortSignal.any([signal, AbortSignal.timeout(answerLimit)]),
    headers: {
      'content-type': 'application/merge-patch+json',
      'content-length': Buffer.byteLength(body),
      accept: 'application/json',
      'user-agent': 'switchyard-lb',
      ...(authorization === undefined ? {} : { authorization }),
    },
    ...(tls.ca === undefined ? {} : { ca: tls.ca }),
    ...(tls.cert === undefined ? {} : { cert: tls.cert }),
    ...(tls.key === undefined ? {} : { key: tls.key }),
    ...(tls.serverName === undefined ? {} : { servername: tls.serverName }),
    rejectUnauthorized: !tls.insecureSkipVerify,
  } as https.RequestOptions);
  try {
    const answer = await send(request, body);
    if (answer.status === 401) credentials.forget();
    return answer;
  } catch (cause) {
    if (signal.aborted) throw signal.reason;
    const reason = messageOf(cause);
    throw new ApiServerError('api.unreachable', `PATCH ${path}/status: no answer: ${reason}; will be tried again`, {
      cause,
      isRetryable: true,
    });
  }
}

async function send(request: http.ClientRequest, body: string): Promise<Answer> {
  const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
    // The error listener stays: an abort after the answer must not end the process.
    request.on('error', reject).on('response', resolve).end(body);
  });
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk as string; // setEncoding makes it text
  return { status: response.statusCode ?? 0, body: text };
}

function refused(path: string, { status, body }: Answer): ApiServerError {
  const advice = status === 403 ? 'grant "patch" on services/status to this account; ' : '';
  return new ApiServerError(
    `api.${status}`,
    `PATCH ${path}/status: answered ${status}: ${messageIn(body)}; ${advice}will be tried again`,
    { isRetryable: true, status },
  );
}

function messageIn(body: string): string {
  try {
    const parsed: unknown = JSON.parse(body);
    if (typeof parsed === 'object' && parsed !== null && 'message' in parsed) return String(parsed.message);
  } catch {
    // plain text
  }
  return body.trim().slice(0, 200) || 'no reason given';
}

/** Times in the API have whole seconds. */
function isoSeconds(time: Millis): string {
  return `${new Date(time).toISOString().slice(0, 19)}Z`;
}
