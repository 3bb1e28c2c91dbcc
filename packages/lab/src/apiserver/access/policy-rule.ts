import type { ApiRequest } from './api-request.ts';

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
