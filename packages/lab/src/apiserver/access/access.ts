import { notAuthorized } from '../status-error.ts';
import { type ApiRequest, apiRequest } from './api-request.ts';
import { isGranted, type PolicyRule } from './policy-rule.ts';

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
