import { optional, requireText } from '../base/argument.ts';
import { requireUrl } from './check-arguments.ts';

/** Source of the `Authorization` header. Every request calls it, so it must be cheap. */
export interface Credentials {
  /** Returns the header's whole value; undefined if none is needed (client certificate, plain HTTP). */
  authorization(signal: AbortSignal): Promise<string | undefined>;
  /** Discards cached credentials after a 401 answer; the next call reads them again. */
  forget(): void;
}

/** TLS settings: trust in the server and an optional client certificate. */
export interface TlsSettings {
  /** PEM. Undefined means the system's own certificate authorities. */
  readonly ca: string | undefined;
  /** PEM of the client certificate, and of its key. */
  readonly cert: string | undefined;
  readonly key: string | undefined;
  /** Name to check the server's certificate against, if it is not the URL's host. */
  readonly serverName: string | undefined;
  /** Whether any certificate is accepted. Only at the operator's explicit request. */
  readonly insecureSkipVerify: boolean;
}

/** URL, TLS settings and credentials of one API server. */
export interface ApiServerConnection {
  /** `http:` or `https:`; a path is a prefix of every request. */
  readonly url: URL;
  /** Unused for `http:`. */
  readonly tls: TlsSettings;
  readonly credentials: Credentials;
}

/** Trusts the system's certificate authorities, presents no certificate. */
export const defaultTls: TlsSettings = {
  ca: undefined,
  cert: undefined,
  key: undefined,
  serverName: undefined,
  insecureSkipVerify: false,
};

/** Returns a connection without credentials. Throws `UsageError` for anything but an http or https URL. */
export function anonymousConnection(url: URL): ApiServerConnection {
  requireUrl('anonymousConnection: url', url);
  return { url, tls: defaultTls, credentials: fixedCredentials(undefined) };
}

/** Returns credentials that never change; undefined sends no header. Throws `UsageError` for anything but a text. */
export function fixedCredentials(authorization: string | undefined): Credentials {
  optional(requireText)('fixedCredentials: authorization', authorization);
  return { authorization: () => Promise.resolve(authorization), forget: () => undefined };
}
