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

/** Returns `value` as a JSON answer. */
export function jsonAnswer(
  status: HttpAnswer['status'],
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): HttpAnswer {
  return textAnswer(status, `${JSON.stringify(value)}\n`, { 'Content-Type': 'application/json', ...headers });
}

/** Returns `text`, unchanged, as a plain text answer. */
export function textAnswer(
  status: HttpAnswer['status'],
  text: string,
  headers: Readonly<Record<string, string>> = {},
): HttpAnswer {
  return {
    status,
    headers: { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff', ...headers },
    body: text,
  };
}
