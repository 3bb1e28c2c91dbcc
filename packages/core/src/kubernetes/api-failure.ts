import { requireText } from '../base/argument.ts';
import { ApiServerError } from '../base/errors.ts';
import { type Millis, seconds } from '../base/time.ts';

/** A failed request to the API server. */
export class ApiFailure extends ApiServerError {
  /** Wait from the `Retry-After` header; undefined without a header, or for a date. */
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

/** A response with a status other than 200. `body` may be JSON, text or empty. */
interface Refusal {
  readonly request: string;
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly body: string;
}

/** Longest accepted `Retry-After`, in seconds. Longer values come from misconfigured intermediaries. */
const longestRetryAfter = 300;

/** Returns the error for a refused request. Bodies are often, but not always, a JSON `Status` with a message. */
export function failureFrom({ request, status, retryAfter, body }: Refusal): ApiFailure {
  return new ApiFailure(`api.${status}`, `${request}: answered ${status}: ${statusMessage(body)}; ${advice(status)}`, {
    status,
    retryAfter: parseRetryAfter(retryAfter),
  });
}

/** Parses a `Retry-After` header in seconds; undefined without a header, or for a date. */
export function parseRetryAfter(header: string | undefined): Millis | undefined {
  return /^\d+$/.test(header ?? '') ? seconds(Math.min(Number(header), longestRetryAfter)) : undefined;
}

/** Returns the error for a request without an answer, or with an incomplete one. */
export function brokenOff(request: string, what: string, cause?: unknown): ApiFailure {
  const reason = cause instanceof Error ? `: ${causeText(cause)}` : '';
  return new ApiFailure('api.unreachable', `${request}: ${what}${reason}; will be tried again`, { cause });
}

/** Returns the error for a body whose connection closed before its end, as when the API server is killed. */
export function cutOff(request: string): ApiFailure {
  return new ApiFailure('api.cut', `${request}: the connection closed before the end; will be tried again`, {});
}

/** Whether the error is from `cutOff`. It is an ordinary end of a watch (fixture fact 39). */
export function isCut(error: unknown): boolean {
  return error instanceof ApiFailure && error.code === 'api.cut';
}

/** Returns the error for a body without data for too long. */
export function fellSilent(request: string): ApiFailure {
  return new ApiFailure('api.silent', `${request}: the server sent nothing for too long; will be tried again`, {});
}

/** Whether the error is from `fellSilent`. */
export function isSilent(error: unknown): boolean {
  return error instanceof ApiFailure && error.code === 'api.silent';
}

/** Whether the kernel reports that the peer closed the connection. */
export function isReset(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
}

/** Whether the server no longer has the requested version or page (fixture facts 6 and 16). */
export function isExpired(error: unknown): boolean {
  return error instanceof ApiFailure && error.status === 410;
}

/** Returns the message of a refusal: that of a `Status`, or plain text, shortened. Throws `UsageError` for anything but a text. */
export function statusMessage(body: string): string {
  requireText('statusMessage: body', body);
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
  return /wrong version number/.test(line) ? `${line} (the server does not speak TLS)` : line;
}
