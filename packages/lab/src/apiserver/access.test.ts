import { describe, expect, test } from 'vitest';
import { StatusError } from './status-error.ts';
import { apiRequest, createAccess, isGranted, type PolicyRule } from './access.ts';

const urlOf = (target: string): URL => new URL(target, 'http://server');

describe('verb, resource and name of a request', () => {
  test.each([
    ['GET', '/api/v1/services', 'list services in  of '],
    ['GET', '/api/v1/namespaces/a/services/b', 'get services in a of b'],
    ['GET', '/api/v1/services?watch=true', 'watch services in  of '],
    ['GET', '/api/v1/services?watch=1', 'watch services in  of '],
    ['GET', '/api/v1/nodes?fieldSelector=metadata.name%3Dn1&watch=true', 'watch nodes in  of n1'],
    ['GET', '/api/v1/nodes?fieldSelector=metadata.name!%3Dn1', 'list nodes in  of '],
    ['HEAD', '/api/v1/nodes/n1', 'get nodes in  of n1'],
    ['GET', '/api/v1/namespaces/a', 'get namespaces in  of a'],
    ['GET', '/api/v1/namespaces/a/status', 'get namespaces/status in  of a'],
    ['POST', '/apis/events.k8s.io/v1/namespaces/a/events', 'create events.events.k8s.io in a of '],
    ['PATCH', '/apis/events.k8s.io/v1/namespaces/a/events/b', 'patch events.events.k8s.io in a of b'],
    ['PUT', '/api/v1/namespaces/a/services/b/status', 'update services/status in a of b'],
    ['DELETE', '/api/v1/namespaces/a/services/b', 'delete services in a of b'],
    ['DELETE', '/api/v1/namespaces/a/services', 'deletecollection services in a of '],
    ['POST', '/api/v1/namespaces/a/pods/b:80/proxy/c/d', 'create pods/proxy in a of b:80'],
    ['GET', '/version', 'get /version'],
    ['GET', '/apis/apps/v1', 'get /apis/apps/v1'],
  ])('%s %s', (method, target, expected) => {
    const request = apiRequest(method, urlOf(target));
    const text =
      request.kind === 'other'
        ? request.path
        : `${request.resource}${request.group === '' ? '' : `.${request.group}`} in ${request.namespace} of ${request.name}`;
    expect(`${request.verb} ${text}`).toBe(expected);
  });
});

describe('what a rule grants', () => {
  const list = apiRequest('GET', urlOf('/apis/discovery.k8s.io/v1/endpointslices'));
  const status = apiRequest('PUT', urlOf('/api/v1/namespaces/a/services/b/status'));
  const version = apiRequest('GET', urlOf('/version/x'));
  test.each<readonly [string, PolicyRule, typeof list, boolean]>([
    [
      'its verb, group and resource',
      { verbs: ['list'], apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'] },
      list,
      true,
    ],
    [
      'no other verb',
      { verbs: ['watch', 'get'], apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'] },
      list,
      false,
    ],
    ['no other group', { verbs: ['list'], apiGroups: [''], resources: ['endpointslices'] }, list, false],
    ['no other resource', { verbs: ['list'], apiGroups: ['discovery.k8s.io'], resources: ['services'] }, list, false],
    ['everything, by stars', { verbs: ['*'], apiGroups: ['*'], resources: ['*'] }, list, true],
    ['a resource without its subresources', { verbs: ['*'], apiGroups: [''], resources: ['services'] }, status, false],
    ['a subresource', { verbs: ['*'], apiGroups: [''], resources: ['services/status'] }, status, true],
    ['a subresource of everything', { verbs: ['*'], apiGroups: [''], resources: ['*/status'] }, status, true],
    [
      'its names only',
      { verbs: ['*'], apiGroups: [''], resources: ['services/status'], resourceNames: ['c'] },
      status,
      false,
    ],
    [
      'a name it lists',
      { verbs: ['*'], apiGroups: [''], resources: ['services/status'], resourceNames: ['b'] },
      status,
      true,
    ],
    ['a path', { verbs: ['get'], nonResourceURLs: ['/version/*'] }, version, true],
    ['no path by resources', { verbs: ['*'], apiGroups: ['*'], resources: ['*'] }, version, false],
  ])('%s', (_, rule, request, expected) => {
    expect(isGranted(rule, request)).toBe(expected);
  });
});

describe('access', () => {
  const rules = [{ verbs: ['create'], apiGroups: [''], resources: ['pods'] }];

  test.each([
    [
      'GET',
      '/api/v1/services',
      'services is forbidden: User "alice" cannot list resource "services" in API group "" at the cluster scope',
      { kind: 'services' },
    ],
    [
      'GET',
      '/api/v1/namespaces/default/services/web',
      'services "web" is forbidden: User "alice" cannot get resource "services" in API group "" in the namespace "default"',
      { name: 'web', kind: 'services' },
    ],
    [
      'GET',
      '/api/v1/services?watch=true',
      'services is forbidden: User "alice" cannot watch resource "services" in API group "" at the cluster scope',
      { kind: 'services' },
    ],
    [
      'PATCH',
      '/api/v1/namespaces/default/services/web/status',
      'services "web" is forbidden: User "alice" cannot patch resource "services/status" in API group "" in the namespace "default"',
      { name: 'web', kind: 'services' },
    ],
  ])('%s %s is refused as recorded from kube-apiserver 1.36.2', (method, target, message, details) => {
    const access = createAccess();
    access.addUser({ name: 'alice', token: 't', rules });
    const status = statusOf(() => access.check(method, urlOf(target), 'Bearer t'));
    expect(status).toMatchObject({ reason: 'Forbidden', code: 403, message, details });
  });

  test('concerns only users that were added, as long as they are', () => {
    const access = createAccess();
    const alice = access.addUser({ name: 'alice', token: 't', rules });
    const check = (authorization?: string): void => access.check('GET', urlOf('/api/v1/services'), authorization);
    expect(() => check()).not.toThrow();
    expect(() => check('Bearer other')).not.toThrow();
    expect(() => check('Bearer t')).toThrow('services is forbidden');
    expect(() => access.check('POST', urlOf('/api/v1/namespaces/a/pods'), 'Bearer t')).not.toThrow();
    expect(() => access.check('GET', urlOf('/version'), 'Bearer t')).not.toThrow();
    alice[Symbol.dispose]();
    expect(() => check('Bearer t')).not.toThrow();
  });

  test('reports user and request to its listeners', () => {
    const access = createAccess();
    const seen: string[] = [];
    const listening = access.audit(({ user, request, isAllowed }) => seen.push(`${user} ${request.verb} ${isAllowed}`));
    access.addUser({ name: 'alice', token: 't', rules });
    access.check('GET', urlOf('/version'), undefined);
    expect(() => access.check('GET', urlOf('/api/v1/services'), 'Bearer t')).toThrow('forbidden');
    listening[Symbol.dispose]();
    access.check('GET', urlOf('/version'), undefined);
    expect(seen).toEqual([' get true', 'alice list false']);
  });
});

function statusOf(action: () => void): unknown {
  try {
    action();
  } catch (error) {
    return error instanceof StatusError ? error.toStatus() : error;
  }
  return undefined;
}
