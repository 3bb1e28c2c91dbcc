import { createHash } from 'node:crypto';
import type { JsonObject } from '../json.ts';
import { apiVersionOf, type ResourceDefinition } from '../resource.ts';

const collectionVerbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];
const subresourceVerbs = ['get', 'patch', 'update'];

/** The aggregated document (KEP-3352) of `/api` (core group) or `/apis` (all others). */
export function aggregatedDiscovery(resources: readonly ResourceDefinition[], isCore: boolean): JsonObject {
  const groups = groupsOf(resources).filter((group) => (group === '') === isCore);
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: 'apidiscovery.k8s.io/v2',
    metadata: {},
    items: groups.map((group) => ({
      metadata: group === '' ? {} : { name: group },
      versions: [
        {
          version: 'v1',
          resources: resources.filter((resource) => resource.group === group).map(discoveryEntry),
          freshness: 'Current',
        },
      ],
    })),
  };
}

/** The older documents: `/api`, `/apis`, `/apis/GROUP`, `/api/v1`, `/apis/GROUP/v1`; undefined for other paths. */
export function legacyDiscovery(
  path: string,
  resources: readonly ResourceDefinition[],
  serverAddress: string,
): JsonObject | undefined {
  if (path === '/api') {
    const serverAddressByClientCIDRs = [{ clientCIDR: '0.0.0.0/0', serverAddress }];
    return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs };
  }
  const groups = groupsOf(resources).filter((group) => group !== '');
  if (path === '/apis') return { kind: 'APIGroupList', apiVersion: 'v1', groups: groups.map(groupEntry) };
  const [, root, group = '', version, ...rest] = path.split('/');
  if (rest.length > 0) return undefined;
  if (root === 'api' && group === 'v1' && version === undefined) return resourceList('v1', resources);
  if (root !== 'apis' || !groups.includes(group)) return undefined;
  if (version === undefined) return { kind: 'APIGroup', apiVersion: 'v1', ...groupEntry(group) };
  return version === 'v1' ? resourceList(`${group}/v1`, resources) : undefined;
}

/** Entity tag of a document. */
export function etagOf(body: string): string {
  return `"${createHash('sha512').update(body).digest('hex').toUpperCase()}"`;
}

/** Groups in the order of the table, each once. */
export function groupsOf(resources: readonly ResourceDefinition[]): readonly string[] {
  return [...new Set(resources.map((resource) => resource.group))];
}

function discoveryEntry(resource: ResourceDefinition): JsonObject {
  const { plural, kind, singular, shortNames, categories, subresources } = resource;
  const responseKind = { group: '', version: '', kind };
  return {
    resource: plural,
    responseKind,
    scope: resource.isNamespaced ? 'Namespaced' : 'Cluster',
    singularResource: singular,
    verbs: verbsOf(resource),
    ...(shortNames.length > 0 ? { shortNames } : {}),
    ...(categories.length > 0 ? { categories } : {}),
    ...(subresources.length > 0
      ? {
          subresources: subresources.map((subresource) => ({
            subresource,
            responseKind:
              subresource === 'scale' ? { group: 'autoscaling', version: 'v1', kind: 'Scale' } : responseKind,
            verbs: subresourceVerbs,
          })),
        }
      : {}),
  };
}

function resourceList(groupVersion: string, resources: readonly ResourceDefinition[]): JsonObject {
  const served = resources.filter((resource) => apiVersionOf(resource) === groupVersion);
  const apiVersion = groupVersion === 'v1' ? {} : { apiVersion: 'v1' };
  return { kind: 'APIResourceList', ...apiVersion, groupVersion, resources: served.flatMap(resourceEntries) };
}

function resourceEntries(resource: ResourceDefinition): readonly JsonObject[] {
  const { plural, singular, kind, isNamespaced: namespaced, shortNames, categories } = resource;
  const main: JsonObject = {
    name: plural,
    singularName: singular,
    namespaced,
    kind,
    verbs: verbsOf(resource),
    ...(shortNames.length > 0 ? { shortNames } : {}),
    ...(categories.length > 0 ? { categories } : {}),
  };
  const subs = resource.subresources.map((subresource) => ({
    name: `${plural}/${subresource}`,
    singularName: '',
    namespaced,
    ...(subresource === 'scale' ? { group: 'autoscaling', version: 'v1', kind: 'Scale' } : { kind }),
    verbs: subresourceVerbs,
  }));
  return [main, ...subs];
}

function verbsOf(resource: ResourceDefinition): readonly string[] {
  return resource.kind === 'Namespace'
    ? collectionVerbs.filter((verb) => verb !== 'deletecollection')
    : collectionVerbs;
}

function groupEntry(name: string): JsonObject {
  const version = { groupVersion: `${name}/v1`, version: 'v1' };
  return { name, versions: [version], preferredVersion: version };
}
