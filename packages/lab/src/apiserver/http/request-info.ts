import type { ResourceDefinition } from '../resource.ts';
import { noSuchResource } from '../status-error.ts';

/** Resource, object and subresource in a request's path. */
export interface RequestInfo {
  readonly resource: ResourceDefinition;
  /** '' when the path has none: all namespaces, or a cluster-scoped kind. */
  readonly namespace: string;
  /** Undefined for a collection. */
  readonly name: string | undefined;
  readonly subresource: string | undefined;
  /** The older form `/api/v1/watch/…`. */
  readonly isWatchPath: boolean;
}

const namespaceSubresources = new Set(['status', 'finalize']);

/**
 * Reads `/api/v1/…` and `/apis/GROUP/VERSION/…`. Undefined when no such group and version is served, or the
 * path is not of this form; rejects with a 404 Status when the group has no such resource.
 */
export function parseResourcePath(path: string, resources: readonly ResourceDefinition[]): RequestInfo | undefined {
  const segments = path.split('/').slice(1).map(decodeURIComponent);
  const isCore = segments[0] === 'api';
  if (!isCore && segments[0] !== 'apis') return undefined;
  const group = isCore ? '' : (segments[1] ?? '');
  const version = segments[isCore ? 1 : 2];
  const rest = segments.slice(isCore ? 2 : 3);
  const served = resources.filter((resource) => resource.group === group && resource.version === version);
  if (served.length === 0 || rest.length === 0) return undefined;
  const isWatchPath = rest[0] === 'watch';
  if (isWatchPath) rest.shift();
  const isInNamespace = rest[0] === 'namespaces' && rest.length >= 3 && !namespaceSubresources.has(rest[2] ?? '');
  const namespace = isInNamespace ? (rest[1] ?? '') : '';
  const [plural, name, subresource, ...excess] = isInNamespace ? rest.slice(2) : rest;
  const resource = served.find((candidate) => candidate.plural === plural);
  if (resource === undefined || excess.length > 0 || resource.isNamespaced !== isInNamespace) {
    // A namespaced collection may be read over all namespaces.
    if (resource === undefined || isInNamespace || name !== undefined) throw noSuchResource();
  }
  return { resource, namespace, name, subresource, isWatchPath };
}
