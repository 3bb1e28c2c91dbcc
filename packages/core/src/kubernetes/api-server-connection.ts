import * as check from '../base/argument.ts';
import type { ApiServerAddress } from '../model/forwarding/forwarding-table.ts';
import { tryParseIp } from '../model/ip/address.ts';
import { parsePort, type Port } from '../model/ip/port.ts';
import { portOf } from './api-request.ts';

/** Throws `UsageError` unless `value` is the URL of an API server. */
function requireUrl(name: string, value: unknown): void {
  if (!(value instanceof URL)) throw check.wrongArgument(name, 'a URL', value);
  if (!['http:', 'https:'].includes(value.protocol))
    throw check.wrongArgument(name, 'an http or https URL', value.href);
}

/** Throws `UsageError` unless `value` looks like an `ApiServerConnection`. */
export function requireConnection(name: string, value: unknown): void {
  const credentials = check.withMethods('authorization', 'forget');
  check.requireFields(name, value, { url: requireUrl, tls: check.objectArgument, credentials });
}

/** Throws `UsageError` unless the options of a client have their types. */
export function requireClientOptions(name: string, value: unknown): void {
  check.requireFields(name, value, {
    clock: check.requireClock,
    userAgent: check.requireText,
    metrics: check.optional(check.requireMetrics),
    connectLimit: check.optional(check.requireNumber),
    onAddress: check.optional(check.requireFunction),
    agent: requireAgent,
  });
}

/** Check for a pool of connections, or undefined. */
export const requireAgent: check.ArgumentCheck = check.optional(check.withMethods('destroy'));

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
  check.optional(check.requireText)('fixedCredentials: authorization', authorization);
  return { authorization: () => Promise.resolve(authorization), forget: () => undefined };
}

/** Limit of remembered addresses; the oldest are removed first. */
const maxAddresses = 16;

/**
 * Destination addresses of connections to an API server: the URL's own, or those to which its name resolved. Each is known
 * before the first packet to it is sent.
 */
export class ApiServerAddresses {
  readonly #port: Port;
  #known: readonly ApiServerAddress[] = [];
  #onChange: () => void = () => undefined;

  /** Throws `UsageError` for anything but an http or https URL. */
  constructor(url: URL) {
    requireUrl('ApiServerAddresses: url', url);
    this.#port = parsePort(portOf(url));
    this.note(url.hostname.replace(/^\[|\]$/g, ''));
  }

  /** The same array until something changes. */
  get current(): readonly ApiServerAddress[] {
    return this.#known;
  }

  /** Calls `listener` after each change. One listener. */
  onChange(listener: () => void): void {
    this.#onChange = listener;
  }

  /** Adds the destination address of a connection; ignores a name or any other text. */
  note(text: string): void {
    const address = tryParseIp(text);
    if (address === undefined || this.#known.some((one) => one.address === address)) return;
    this.#known = [...this.#known, { address, port: this.#port }].slice(-maxAddresses);
    this.#onChange();
  }
}
