import { notAuthorized } from '../status-error.ts';
import { type ApiRequest, apiRequest } from './api-request.ts';
import { isGranted, type PolicyRule } from './policy-rule.ts';

/** Somebody whose rights are limited. */
export interface ApiUser {
  /** As error texts name it, such as `system:serviceaccount:kube-system:switchyard`. */
  readonly name: string;
  /** By which requests are known to be this user's. */
  readonly token: string;
  readonly rules: readonly PolicyRule[];
}

/** One request that has come, for who watches. */
export interface AuditEntry {
  /** '' for everybody who was not added as a user. */
  readonly user: string;
  readonly request: ApiRequest;
  readonly isAllowed: boolean;
}

/** Who may do what. Everybody may do everything, except for users that were added. */
export interface Access {
  /** Requests with this user's token get 403 for what no rule grants. Dispose to forget the user. */
  addUser(user: ApiUser): Disposable;
  /** Calls `listener` with every request, after it was allowed or not and before it is served, until disposed. */
  audit(listener: (entry: AuditEntry) => void): Disposable;
}

/** What the server asks before it serves a request. */
export interface AccessCheck extends Access {
  /** Throws the 403 Status of what is not allowed. */
  check(method: string, url: URL, authorization: string | undefined): void;
}

/** Nobody is limited at first. */
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
      // Documents such as /version are open to whoever is known (system:discovery, system:public-info-viewer).
      const isAllowed =
        user === undefined || request.kind === 'other' || user.rules.some((rule) => isGranted(rule, request));
      for (const listener of listeners) listener({ user: user?.name ?? '', request, isAllowed });
      if (!isAllowed && request.kind === 'resource') throw notAuthorized(user.name, request);
    },
  };
}
