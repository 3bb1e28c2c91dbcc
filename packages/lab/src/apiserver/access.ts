import { notAuthorized } from './status-error.ts';

/** One rule of a Role or ClusterRole (rbac.authorization.k8s.io/v1). */
export interface PolicyRule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  /** Absent or empty: any name. */
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
}

/** Whether one rule grants a request, as kube-apiserver decides: `*` matches anything, and rules only grant. */
export function isGranted(rule: PolicyRule, request: ApiRequest): boolean {
  if (!matches(rule.verbs, request.verb)) return false;
  if (request.kind === 'other') return (rule.nonResourceURLs ?? []).some((url) => matchesPath(url, request.path));
  const names = rule.resourceNames ?? [];
  return (
    matches(rule.apiGroups ?? [], request.group) &&
    (rule.resources ?? []).some((resource) => matchesResource(resource, request.resource)) &&
    (names.length === 0 || names.includes(request.name))
  );
}

function matches(granted: readonly string[], wanted: string): boolean {
  return granted.includes('*') || granted.includes(wanted);
}

/** `*` is everything; `*` before a slash is that subresource of everything; a resource does not include its subresources. */
function matchesResource(granted: string, wanted: string): boolean {
  if (granted === '*' || granted === wanted) return true;
  const subresource = wanted.split('/')[1];
  return subresource !== undefined && granted === `*/${subresource}`;
}

function matchesPath(granted: string, path: string): boolean {
  return granted.endsWith('*') ? path.startsWith(granted.slice(0, -1)) : path === granted;
}

/** A request in the terms of Kubernetes' access rules. */
export type ApiRequest = ResourceRequest | OtherRequest;

/** A request for objects. */
export interface ResourceRequest {
  readonly kind: 'resource';
  /** `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`. */
  readonly verb: string;
  /** '' for the core group. */
  readonly group: string;
  /** With its subresource: `services`, `services/status`. */
  readonly resource: string;
  /** '' for cluster-scoped kinds and for all namespaces. */
  readonly namespace: string;
  /** Also the name in a list or watch by `metadata.name=…`; '' for none. */
  readonly name: string;
}

/** A request for a document, such as `/version`. */
export interface OtherRequest {
  readonly kind: 'other';
  /** The method in lower case. */
  readonly verb: string;
  readonly path: string;
}

const verbByMethod: Readonly<Record<string, string>> = {
  GET: 'get',
  HEAD: 'get',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

interface ResourcePath {
  readonly group: string;
  readonly version: string | undefined;
  /** '' for cluster-scoped kinds and for all namespaces. */
  readonly namespace: string;
  readonly isInNamespace: boolean;
  readonly plural: string;
  /** Undefined for a collection. */
  readonly name: string | undefined;
  readonly subresource: string | undefined;
  /** Segments after the subresource. */
  readonly excess: readonly string[];
}

/** Reads `/api/v1/…` and `/apis/GROUP/VERSION/…`; undefined for other paths. */
export function resourcePath(path: string): ResourcePath | undefined {
  const segments = path.split('/').slice(1).map(decodeURIComponent);
  const isCore = segments[0] === 'api';
  const rest = segments.slice(isCore ? 2 : 3);
  if ((!isCore && segments[0] !== 'apis') || rest.length === 0) return undefined;
  const isInNamespace = rest[0] === 'namespaces' && rest.length >= 3 && !['status', 'finalize'].includes(rest[2] ?? '');
  const namespace = isInNamespace ? (rest[1] ?? '') : '';
  const [plural = '', name, subresource, ...excess] = isInNamespace ? rest.slice(2) : rest;
  const [group, version] = isCore ? ['', segments[1]] : [segments[1] ?? '', segments[2]];
  return { group, version, namespace, isInNamespace, plural, name, subresource, excess };
}

/** Reads method and URL as kube-apiserver does, whether or not such a resource is served. */
export function apiRequest(method: string, url: URL): ApiRequest {
  const path = resourcePath(url.pathname);
  if (path === undefined) return { kind: 'other', verb: method.toLowerCase(), path: url.pathname };
  // Access rules ignore the rest of the path after a subresource, for example after pods/proxy.
  const { group, namespace, plural, name = '', subresource } = path;
  const isWatch = ['1', 'true'].includes(url.searchParams.get('watch') ?? '');
  return {
    kind: 'resource',
    verb: verbOf(method, { isCollection: name === '', isWatch }),
    group,
    resource: subresource === undefined ? plural : `${plural}/${subresource}`,
    namespace,
    name: name || namedBySelector(url),
  };
}

function verbOf(method: string, asked: { readonly isCollection: boolean; readonly isWatch: boolean }): string {
  const verb = verbByMethod[method] ?? method.toLowerCase();
  if (verb === 'get' && asked.isWatch) return 'watch';
  if (verb === 'get' && asked.isCollection) return 'list';
  return verb === 'delete' && asked.isCollection ? 'deletecollection' : verb;
}

function namedBySelector(url: URL): string {
  const terms = (url.searchParams.get('fieldSelector') ?? '').split(',');
  return terms.map((term) => /^metadata\.name==?([^=]+)$/.exec(term)?.[1]).find((name) => name !== undefined) ?? '';
}

/** A user with limited rights. */
export interface ApiUser {
  /** Name in error messages, such as `system:serviceaccount:kube-system:switchyard`. */
  readonly name: string;
  /** Bearer token of the user's requests. */
  readonly token: string;
  readonly rules: readonly PolicyRule[];
}

/** One request, for audit listeners. */
export interface AuditEntry {
  /** '' for a client that is not an added user. */
  readonly user: string;
  readonly request: ApiRequest;
  readonly isAllowed: boolean;
}

/** Access rights. Clients have all rights, except added users. */
export interface Access {
  /** Answers 403 to requests with this user's token that no rule grants. Dispose to remove the user. */
  addUser(user: ApiUser): Disposable;
  /** Calls `listener` with every request after the access check and before serving it, until disposed. */
  audit(listener: (entry: AuditEntry) => void): Disposable;
}

/** Access check before serving a request. */
export interface AccessCheck extends Access {
  /** Throws a 403 Status if the request is not allowed. */
  check(method: string, url: URL, authorization: string | undefined): void;
}

/** Creates the access check without limited users. */
export function createAccess(): AccessCheck {
  const users = new Map<string, ApiUser>();
  const listeners = new Set<(entry: AuditEntry) => void>();
  return {
    addUser: (user) => {
      users.set(user.token, user);
      return { [Symbol.dispose]: () => void users.delete(user.token) };
    },
    audit: (listener) => {
      listeners.add(listener);
      return { [Symbol.dispose]: () => void listeners.delete(listener) };
    },
    check: (method, url, authorization) => {
      if (users.size === 0 && listeners.size === 0) return;
      const user = users.get(authorization?.replace(/^Bearer /, '') ?? '');
      const request = apiRequest(method, url);
      // Authenticated users may read documents such as /version (system:discovery, system:public-info-viewer).
      const isAllowed =
        user === undefined || request.kind === 'other' || user.rules.some((rule) => isGranted(rule, request));
      for (const listener of listeners) listener({ user: user?.name ?? '', request, isAllowed });
      if (!isAllowed && request.kind === 'resource') throw notAuthorized(user.name, request);
    },
  };
}
