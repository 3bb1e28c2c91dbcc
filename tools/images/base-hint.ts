/** Messages of both Docker builders when the base cannot be pulled from its registry. */
const pullFailure =
  /dial tcp|no such host|network is unreachable|i\/o timeout|TLS handshake timeout|Client\.Timeout|failed to resolve source metadata|failed to do request|pull access denied|toomanyrequests/;
/** Messages when the engine itself cannot be reached. */
const engineFailure = /docker daemon|docker api|error during connect/i;

/** Adds to a build's failure, where it looks as if `base` could not be pulled, what to do without a registry. Anything else stays as it is. */
export function withBaseHint(error: unknown, base: string): unknown {
  if (!(error instanceof Error) || !pullFailure.test(error.message) || engineFailure.test(error.message)) return error;
  const hint = `the base ${base} cannot be pulled; --local-base builds a base from this machine's Debian packages instead, without a registry`;
  return new Error(`${error.message}\n${hint}`, { cause: error });
}
