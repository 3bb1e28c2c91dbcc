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

/** Reads method and URL as kube-apiserver does, whether or not such a resource is served. */
export function apiRequest(method: string, url: URL): ApiRequest {
  const segments = url.pathname.split('/').slice(1).map(decodeURIComponent);
  const isCore = segments[0] === 'api';
  const rest = segments.slice(isCore ? 2 : 3);
  if ((!isCore && segments[0] !== 'apis') || rest.length === 0) {
    return { kind: 'other', verb: method.toLowerCase(), path: url.pathname };
  }
  const isWatchPath = rest[0] === 'watch';
  if (isWatchPath) rest.shift();
  const isInNamespace = rest[0] === 'namespaces' && rest.length >= 3 && !['status', 'finalize'].includes(rest[2] ?? '');
  const namespace = isInNamespace ? (rest[1] ?? '') : '';
  // Access rules ignore the rest of the path after a subresource, for example after pods/proxy.
  const [plural = '', name = '', subresource] = isInNamespace ? rest.slice(2) : rest;
  const isWatch = isWatchPath || ['1', 'true'].includes(url.searchParams.get('watch') ?? '');
  return {
    kind: 'resource',
    verb: verbOf(method, { isCollection: name === '', isWatch }),
    group: isCore ? '' : (segments[1] ?? ''),
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
