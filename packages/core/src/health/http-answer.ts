/** A complete answer to one request. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * An answer that is made while it is sent. A piece is asked for when the client has taken the one before, so a large
 * answer costs memory for one piece, and other work of the process runs in between.
 */
export interface HttpStream {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Iterated at most once, never for `HEAD`. When it throws, the connection is cut: the client sees a truncated answer. */
  readonly pieces: AsyncIterable<string | Uint8Array>;
}

/** `value` as a JSON answer. The value is serialised as an object, so no name can break the text. */
export function jsonAnswer(
  status: HttpAnswer['status'],
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): HttpAnswer {
  return textAnswer(status, `${JSON.stringify(value)}\n`, { 'Content-Type': 'application/json', ...headers });
}

/** `text` as a plain text answer, as it is. */
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
