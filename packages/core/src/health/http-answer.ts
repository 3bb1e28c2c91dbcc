/** A complete answer to one request. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** `value` as a JSON answer. The value is serialised as an object, so no name can break the text. */
export function jsonAnswer(
  status: HttpAnswer['status'],
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): HttpAnswer {
  return {
    status,
    headers: { 'Content-Type': 'application/json', 'X-Content-Type-Options': 'nosniff', ...headers },
    body: `${JSON.stringify(value)}\n`,
  };
}
