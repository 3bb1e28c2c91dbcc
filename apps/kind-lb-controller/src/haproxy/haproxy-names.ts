import { type IpFamily, type Port, serviceKey, tryParsePort } from '@switchyard/core';
import type { LoadBalancerId } from '../spec/load-balancer-spec.ts';

/** Purpose of a backend. `port`: TCP traffic of one Service port. `check`: only checks, for what the kernel forwards. */
export type BackendUse = { readonly kind: 'port'; readonly port: Port } | { readonly kind: 'check' };

/** Load balancer and purpose of a backend. */
export interface BackendOwner {
  readonly id: LoadBalancerId;
  readonly use: BackendUse;
  readonly ipFamily: IpFamily;
  /** Whether it is the second backend of a profile with `whenNoneUp: lastUp` or `all`, used while the first has no server UP. */
  readonly isLast: boolean;
}

/**
 * The name of a backend, and of a frontend with the same owner: `cluster:namespace:name:80:ipv4`, with `check` in the
 * place of the port where there is no traffic, and `:last` at the end of a second backend. Unique, because names of
 * clusters, namespaces and Services have no colon.
 */
export function backendName({ id, use, ipFamily, isLast }: BackendOwner): string {
  const owner = safeName(`${id.cluster}:${id.service.replace('/', ':')}`);
  const purpose = use.kind === 'check' ? 'check' : `${use.port}`;
  return `${owner}:${purpose}:${ipFamily.toLowerCase()}${isLast ? ':last' : ''}`;
}

/** Parses a name made by `backendName`; undefined for any other text. */
export function parseBackendName(name: string): BackendOwner | undefined {
  const [cluster, namespace, service, purpose = '', family, last, ...rest] = name.split(':');
  if (cluster === undefined || namespace === undefined || service === undefined) return undefined;
  const use = parseUse(purpose);
  const ipFamily = family === 'ipv4' ? 'IPv4' : family === 'ipv6' ? 'IPv6' : undefined;
  if (use === undefined || ipFamily === undefined || rest.length > 0) return undefined;
  if (last !== undefined && last !== 'last') return undefined;
  return { id: { cluster, service: serviceKey(namespace, service) }, use, ipFamily, isLast: last !== undefined };
}

/** `text` with everything replaced that HAProxy does not allow in a name. Valid Kubernetes names stay as they are. */
export function safeName(text: string): string {
  return text.replace(/[^A-Za-z0-9.:_-]/g, '_');
}

function parseUse(purpose: string): BackendUse | undefined {
  if (purpose === 'check') return { kind: 'check' };
  const port = tryParsePort(Number(purpose));
  return port === undefined ? undefined : { kind: 'port', port };
}
