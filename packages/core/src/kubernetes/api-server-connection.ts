/** Where the `Authorization` header comes from. Asked before every request, so it must be cheap. */
export interface Credentials {
  /** The header's whole value, or undefined when the server wants none (client certificate, plain HTTP). */
  authorization(signal: AbortSignal): Promise<string | undefined>;
  /** The server answered 401: whatever is remembered must be read again next time. */
  forget(): void;
}

/** How to trust the server and, with a client certificate, how to be trusted. */
export interface TlsSettings {
  /** PEM. Undefined means the system's own certificate authorities. */
  readonly ca: string | undefined;
  /** PEM of the client certificate, and of its key. */
  readonly cert: string | undefined;
  readonly key: string | undefined;
  /** Name to check the server's certificate against, if it is not the URL's host. */
  readonly serverName: string | undefined;
  /** Accept any certificate. Only ever on the operator's explicit wish. */
  readonly insecureSkipVerify: boolean;
}

/** Everything needed to talk to one API server. */
export interface ApiServerConnection {
  /** `http:` or `https:`; a path is a prefix of every request. */
  readonly url: URL;
  /** Unused for `http:`. */
  readonly tls: TlsSettings;
  readonly credentials: Credentials;
}

/** Trust the system's authorities, present no certificate. */
export const defaultTls: TlsSettings = {
  ca: undefined,
  cert: undefined,
  key: undefined,
  serverName: undefined,
  insecureSkipVerify: false,
};

/** A connection without credentials. */
export function anonymousConnection(url: URL): ApiServerConnection {
  return { url, tls: defaultTls, credentials: fixedCredentials(undefined) };
}

/** Credentials that never change; undefined sends no header. */
export function fixedCredentials(authorization: string | undefined): Credentials {
  return { authorization: () => Promise.resolve(authorization), forget: () => undefined };
}
