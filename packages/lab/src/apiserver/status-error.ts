import type { ResourceRequest } from './access/api-request.ts';
import type { Json, JsonObject } from './json.ts';
import type { FieldError } from './field-error.ts';

/** The parts of a resource that error texts name. */
export interface NamedResource {
  readonly group: string;
  readonly plural: string;
  readonly kind: string;
}

/** The fields of a Status besides the constant ones. `reason` is absent for a plain 500. */
export interface StatusFields {
  readonly code: number;
  readonly reason?: string;
  readonly message: string;
  readonly details?: JsonObject;
  readonly metadata?: JsonObject;
  readonly retryAfterSeconds?: number;
}

/**
 * An answer that is an error: thrown anywhere under a request, sent as a `Status` object with its code.
 * Texts and details are those of kube-apiserver 1.36.
 */
export class StatusError extends Error {
  override readonly name = 'StatusError';
  readonly fields: StatusFields;

  constructor(fields: StatusFields) {
    super(fields.message);
    this.fields = fields;
  }

  /** The body to send. */
  toStatus(): JsonObject {
    const { code, reason, message, details, metadata } = this.fields;
    const body: Record<string, Json> = {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: metadata ?? {},
      status: 'Failure',
      message,
    };
    if (reason !== undefined) body['reason'] = reason;
    if (details !== undefined) body['details'] = details;
    body['code'] = code;
    return body;
  }
}

/** 404 for an object. */
export function notFound(resource: NamedResource, name: string): StatusError {
  const details = detailsOf(resource, name);
  return new StatusError({
    code: 404,
    reason: 'NotFound',
    message: `${qualified(resource)} "${name}" not found`,
    details,
  });
}

/** 404 for a resource that is not served. */
export function noSuchResource(): StatusError {
  const message = 'the server could not find the requested resource';
  return new StatusError({ code: 404, reason: 'NotFound', message, details: {} });
}

/** 403 because nothing grants it. The resource may have a subresource. */
export function notAuthorized(user: string, request: Omit<ResourceRequest, 'kind'>): StatusError {
  const { verb, group, resource, namespace, name } = request;
  const [plural = ''] = resource.split('/');
  const who = name === '' ? '' : ` "${name}"`;
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace "${namespace}"`;
  const what = `cannot ${verb} resource "${resource}" in API group "${group}" ${where}`;
  return new StatusError({
    code: 403,
    reason: 'Forbidden',
    message: `${group === '' ? plural : `${plural}.${group}`}${who} is forbidden: User "${user}" ${what}`,
    details: { ...(who === '' ? {} : { name }), ...(group === '' ? {} : { group }), kind: plural },
  });
}

/** 405. */
export function methodNotAllowed(): StatusError {
  const message = 'the server does not allow this method on the requested resource';
  return new StatusError({ code: 405, reason: 'MethodNotAllowed', message, details: {} });
}

/** 409 because the name is taken. */
export function alreadyExists(resource: NamedResource, name: string): StatusError {
  const message = `${qualified(resource)} "${name}" already exists`;
  return new StatusError({ code: 409, reason: 'AlreadyExists', message, details: detailsOf(resource, name) });
}

/** 409 because somebody else wrote first, or a precondition fails. */
export function conflict(resource: NamedResource, name: string, why?: string): StatusError {
  const text = why ?? 'the object has been modified; please apply your changes to the latest version and try again';
  const message = `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${text}`;
  return new StatusError({ code: 409, reason: 'Conflict', message, details: detailsOf(resource, name) });
}

/** 403. */
export function forbidden(resource: NamedResource, name: string, why: string): StatusError {
  const message = `${qualified(resource)} "${name}" is forbidden: ${why}`;
  return new StatusError({ code: 403, reason: 'Forbidden', message, details: detailsOf(resource, name) });
}

/** 400. */
export function badRequest(message: string): StatusError {
  return new StatusError({ code: 400, reason: 'BadRequest', message });
}

/** 422 with one cause per field error. `errors` must not be empty. */
export function invalid(
  of: { readonly group: string; readonly kind: string },
  name: string,
  errors: readonly FieldError[],
): StatusError {
  const texts = errors.map((error) => `${error.field}: ${error.detail}`);
  const list = texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`;
  const kind = of.group === '' ? of.kind : `${of.kind}.${of.group}`;
  const details: Record<string, Json> = {};
  if (name !== '') details['name'] = name;
  if (of.group !== '') details['group'] = of.group;
  details['kind'] = of.kind;
  details['causes'] = errors.map(({ reason, detail, field }) => ({ reason, message: detail, field }));
  return new StatusError({ code: 422, reason: 'Invalid', message: `${kind} "${name}" is invalid: ${list}`, details });
}

/** 422 for wrong list or watch options. */
export function invalidListOptions(errors: readonly FieldError[]): StatusError {
  return invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', errors);
}

/** 410. `continueToken` lets the client go on with an inconsistent list. */
export function expired(message: string, continueToken?: string): StatusError {
  const metadata: JsonObject = continueToken === undefined ? {} : { continue: continueToken };
  return new StatusError({ code: 410, reason: 'Expired', message, metadata });
}

/** 415. */
export function unsupportedMediaType(message: string): StatusError {
  return new StatusError({ code: 415, reason: 'UnsupportedMediaType', message, details: {} });
}

/** 503. */
export function serviceUnavailable(message: string): StatusError {
  return new StatusError({ code: 503, reason: 'ServiceUnavailable', message });
}

/** 500. */
export function internalError(message: string): StatusError {
  return new StatusError({ code: 500, message });
}

function qualified(resource: NamedResource): string {
  return resource.group === '' ? resource.plural : `${resource.plural}.${resource.group}`;
}

function detailsOf(resource: NamedResource, name: string): JsonObject {
  return resource.group === ''
    ? { name, kind: resource.plural }
    : { name, group: resource.group, kind: resource.plural };
}
