import { type IpFamily, type Port, type ServiceKey, serviceKey, tryParsePort } from '@switchyard/core';

/** Whose backend it is. */
export interface BackendOwner {
  readonly service: ServiceKey;
  readonly port: Port;
  readonly ipFamily: IpFamily;
}

/**
 * The name of a Service port's frontend and backend in HAProxy: `namespace:name:port:ipv4`. Unique, because names of
 * Services and namespaces have no colon.
 */
export function backendName(service: ServiceKey, port: Port, ipFamily: IpFamily): string {
  return `${safeName(service.replace('/', ':'))}:${port}:${ipFamily.toLowerCase()}`;
}

/** What a name made by `backendName` stands for; undefined for any other text. */
export function parseBackendName(name: string): BackendOwner | undefined {
  const [namespace, service, digits = '', family, ...rest] = name.split(':');
  const port = tryParsePort(Number(digits));
  const ipFamily = family === 'ipv4' ? 'IPv4' : family === 'ipv6' ? 'IPv6' : undefined;
  if (namespace === undefined || service === undefined || port === undefined) return undefined;
  if (ipFamily === undefined || rest.length > 0) return undefined;
  return { service: serviceKey(namespace, service), port, ipFamily };
}

/** `text` with everything replaced that HAProxy does not allow in a name. Valid Kubernetes names stay as they are. */
export function safeName(text: string): string {
  return text.replace(/[^A-Za-z0-9.:_-]/g, '_');
}
