import { messageOf } from '@switchyard/core';
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { internalError, StatusError } from '../status-error.ts';

/** Bodies from this size on are compressed when the client takes gzip. */
const gzipThreshold = 128 * 1024;

/** One answer with a complete body. */
export interface Answer {
  readonly status: number;
  readonly body: string;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
}

/** Sends an answer. */
export function sendAnswer(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
  response.statusCode = answer.status;
  setCommonHeaders(response);
  if (answer.status !== 304) response.setHeader('Content-Type', answer.contentType ?? 'application/json');
  for (const [name, value] of Object.entries(answer.headers ?? {})) response.setHeader(name, value as string);
  if (request.method === 'HEAD') {
    response.setHeader('Content-Length', Buffer.byteLength(answer.body));
    response.end();
    return;
  }
  if (answer.body.length >= gzipThreshold && acceptsGzip(request)) {
    response.setHeader('Content-Encoding', 'gzip');
    response.setHeader('Vary', 'Accept-Encoding');
    response.end(gzipSync(answer.body, { level: 1 }));
    return;
  }
  response.end(answer.status === 304 ? undefined : answer.body);
}

/** Headers that every answer of the real server has. */
export function setCommonHeaders(response: ServerResponse): void {
  response.setHeader('Audit-Id', randomUUID());
  response.setHeader('Cache-Control', 'no-cache, private');
}

/** The answer for an error: a Status, with Retry-After where the Status says when to come back. */
export function answerForError(error: unknown): Answer {
  const status = error instanceof StatusError ? error : internalError(`Internal error occurred: ${messageOf(error)}`);
  const { code, retryAfterSeconds } = status.fields;
  return {
    status: code,
    body: `${JSON.stringify(status.toStatus())}\n`,
    ...(retryAfterSeconds === undefined ? {} : { headers: { 'Retry-After': String(retryAfterSeconds) } }),
  };
}

/** A plain text answer, as health checks and unknown paths get. */
export function textAnswer(status: number, body: string): Answer {
  const headers = { 'X-Content-Type-Options': 'nosniff' };
  return { status, body, contentType: 'text/plain; charset=utf-8', headers };
}

/** A 200 answer with a document. */
export function jsonAnswer(body: unknown): Answer {
  return { status: 200, body: `${JSON.stringify(body)}\n` };
}

function acceptsGzip(request: IncomingMessage): boolean {
  return /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''));
}
