import { objectArgument, requireText, wrongArgument } from '../base/argument.ts';
import { messageOf, UsageError } from '../base/errors.ts';

/** A complete answer to one request. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * An answer that is produced while it is sent. The next piece is read when the client has received the one before. A large
 * answer thus costs memory for one piece, and other work of the process runs in between.
 */
export interface HttpStream {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Iterated at most once, never for `HEAD`. When it throws, the connection is cut: the client sees a truncated answer. */
  readonly pieces: AsyncIterable<string | Uint8Array>;
}

/** Returns `value` as a JSON answer. Throws `UsageError` for a value that JSON lacks, and for what is no status. */
export function jsonAnswer(
  status: HttpAnswer['status'],
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): HttpAnswer {
  requireAnswer('jsonAnswer', status, headers);
  return textAnswer(status, `${jsonText(value)}\n`, { 'Content-Type': 'application/json', ...headers });
}

/** Returns `text`, unchanged, as a plain text answer. Throws `UsageError` for arguments of other types. */
export function textAnswer(
  status: HttpAnswer['status'],
  text: string,
  headers: Readonly<Record<string, string>> = {},
): HttpAnswer {
  requireAnswer('textAnswer', status, headers);
  requireText('textAnswer: text', text);
  return {
    status,
    headers: { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff', ...headers },
    body: text,
  };
}

function requireAnswer(name: string, status: unknown, headers: unknown): void {
  const isStatus = typeof status === 'number' && Number.isInteger(status) && status >= 200 && status <= 599;
  if (!isStatus) throw wrongArgument(`${name}: status`, 'an HTTP status (200-599)', status);
  objectArgument(`${name}: headers`, headers);
}

function jsonText(value: unknown): string {
  try {
    const text: unknown = JSON.stringify(value); // undefined for undefined and functions
    if (typeof text === 'string') return text;
  } catch (cause) {
    const message = `jsonAnswer: value cannot be written as JSON: ${messageOf(cause)}`;
    throw new UsageError('argument.invalid', message, { cause });
  }
  throw wrongArgument('jsonAnswer: value', 'a value that JSON has', value);
}

/** One request, its body already read. */
export interface HttpRequest {
  /** In upper case. */
  readonly method: string;
  /** As sent: neither decoded nor normalised, without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Names in lower case; of a repeated header the first. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** Empty when there is none. */
  readonly body: string;
  /** Address of the client; undefined where it is not known, as in tests. */
  readonly client?: string | undefined;
}

/** An answer as one text or in pieces. */
export type HttpReply = HttpAnswer | HttpStream;

/**
 * Answers one request. Must neither throw nor reject. `HEAD` is answered as `GET`; the listener leaves the body out.
 * `signal` aborts when the client disconnects, and with the server.
 */
export type HttpHandler = (request: HttpRequest, signal: AbortSignal) => HttpReply | Promise<HttpReply>;
