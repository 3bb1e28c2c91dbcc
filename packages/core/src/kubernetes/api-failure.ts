import { ApiServerError } from '../base/errors.ts';
import { type Millis, seconds } from '../base/time.ts';

/** A refusal of the API server that may say when to come back. */
export class ApiFailure extends ApiServerError {
  /** From the `Retry-After` header; undefined when there is none, or when it is a date. */
  readonly retryAfter: Millis | undefined;

  constructor(
    code: string,
    message: string,
    options: ErrorOptions & { readonly status?: number | undefined; readonly retryAfter?: Millis | undefined },
  ) {
    super(code, message, { ...options, isRetryable: true });
    this.retryAfter = options.retryAfter;
  }
}

/** What is known of a response with a status other than 200. `body` may be JSON, text or empty. */
export interface Refusal {
  readonly request: string;
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly body: string;
}

/** A longer wait than this is a mistake of somebody between us and the server. */
const longestRetryAfter = 300;

/** The error for a refused request. Bodies are often, but not always, a JSON `Status` with a message. */
export function failureFrom({ request, status, retryAfter, body }: Refusal): ApiFailure {
  return new ApiFailure(`api.${status}`, `${request}: answered ${status}: ${statusMessage(body)}; ${advice(status)}`, {
    status,
    retryAfter: parseRetryAfter(retryAfter),
  });
}

/** The wait a `Retry-After` header asks for; undefined when there is none, or when it is a date. */
export function parseRetryAfter(header: string | undefined): Millis | undefined {
  return /^\d+$/.test(header ?? '') ? seconds(Math.min(Number(header), longestRetryAfter)) : undefined;
}

/** The error for a request that got no answer, or whose answer broke off. */
export function brokenOff(request: string, what: string, cause?: unknown): ApiFailure {
  const reason = cause instanceof Error ? `: ${causeText(cause)}` : '';
  return new ApiFailure('api.unreachable', `${request}: ${what}${reason}; will be tried again`, { cause });
}

/** The error for a body whose connection closed before its end, as when the API server is killed. */
export function cutOff(request: string): ApiFailure {
  return new ApiFailure('api.cut', `${request}: the connection closed before the end; will be tried again`, {});
}

/** Whether the error is from `cutOff`. For a watch that is an ordinary end (fixture fact 39). */
export function isCut(error: unknown): boolean {
  return error instanceof ApiFailure && error.code === 'api.cut';
}

/** The error for a body that brought nothing for too long. */
export function fellSilent(request: string): ApiFailure {
  return new ApiFailure('api.silent', `${request}: nothing was heard for too long; will be tried again`, {});
}

/** Whether the error is from `fellSilent`. */
export function isSilent(error: unknown): boolean {
  return error instanceof ApiFailure && error.code === 'api.silent';
}

/** Whether the peer closed the connection, as the kernel says. */
export function isReset(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
}

/** Whether the server no longer has the version or the page that was asked for (fixture facts 6 and 16). */
export function isExpired(error: unknown): boolean {
  return error instanceof ApiFailure && error.status === 410;
}

/** What a refusal's body says: the message of a `Status`, or plain text, shortened. */
export function statusMessage(body: string): string {
  try {
    const parsed: unknown = JSON.parse(body);
    const message = typeof parsed === 'object' && parsed !== null && 'message' in parsed ? parsed.message : undefined;
    if (typeof message === 'string' && message !== '') return message;
  } catch {
    // plain text, as 429 and 503 send it
  }
  const text = body.trim().slice(0, 200);
  return text === '' ? 'no reason given' : text;
}

function advice(status: number): string {
  if (status === 401) return 'check the credentials; they are read again';
  if (status === 403) return 'grant "list" and "watch" to this account; will be tried again';
  return 'will be tried again';
}

function causeText(error: Error): string {
  const first = error instanceof AggregateError ? (error.errors[0] as unknown) : undefined;
  const text = first instanceof Error ? first.message : error.message;
  const line = text.trim().split('\n')[0] ?? '';
  return /wrong version number/.test(line) ? `${line} (what answers there does not speak TLS)` : line;
}
