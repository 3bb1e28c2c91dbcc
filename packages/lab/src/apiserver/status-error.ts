import type { ResourceRequest } from './access.ts';
import type { Json, JsonObject } from './json.ts';

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
 * Error of a request: thrown by any part of the server, sent as a `Status` object with its code.
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
    const { code, reason, message, details, metadata = {} } = this.fields;
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata,
      status: 'Failure',
      message,
      ...(reason === undefined ? {} : { reason }),
      ...(details === undefined ? {} : { details }),
      code,
    };
  }
}

/** 404 for an object. */
export function notFound(resource: NamedResource, name: string): StatusError {
  const details = detailsOf(resource, name);
  return statusError(404, 'NotFound', `${qualified(resource)} "${name}" not found`, details);
}

/** 404 for a resource that is not served. */
export function noSuchResource(): StatusError {
  return statusError(404, 'NotFound', 'the server could not find the requested resource', {});
}

/** 403 because no rule grants the request. `resource` may include a subresource. */
export function notAuthorized(user: string, request: Omit<ResourceRequest, 'kind'>): StatusError {
  const { verb, group, resource, namespace, name } = request;
  const [plural = ''] = resource.split('/');
  const who = name === '' ? '' : ` "${name}"`;
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace "${namespace}"`;
  const what = `cannot ${verb} resource "${resource}" in API group "${group}" ${where}`;
  const message = `${qualified({ plural, group })}${who} is forbidden: User "${user}" ${what}`;
  const details = { ...(who === '' ? {} : { name }), ...groupOf({ group }), kind: plural };
  return statusError(403, 'Forbidden', message, details);
}

export function methodNotAllowed(): StatusError {
  const message = 'the server does not allow this method on the requested resource';
  return statusError(405, 'MethodNotAllowed', message, {});
}

/** 409 because the name is taken. */
export function alreadyExists(resource: NamedResource, name: string): StatusError {
  const message = `${qualified(resource)} "${name}" already exists`;
  return statusError(409, 'AlreadyExists', message, detailsOf(resource, name));
}

/** 409 because another client wrote first or a precondition failed. */
export function conflict(resource: NamedResource, name: string, why?: string): StatusError {
  const text = why ?? 'the object has been modified; please apply your changes to the latest version and try again';
  const message = `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${text}`;
  return statusError(409, 'Conflict', message, detailsOf(resource, name));
}

export function forbidden(resource: NamedResource, name: string, why: string): StatusError {
  const message = `${qualified(resource)} "${name}" is forbidden: ${why}`;
  return statusError(403, 'Forbidden', message, detailsOf(resource, name));
}

export function badRequest(message: string): StatusError {
  return statusError(400, 'BadRequest', message);
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
  const causes = errors.map(({ reason, detail, field }) => ({ reason, message: detail, field }));
  const details = { ...(name === '' ? {} : { name }), ...groupOf(of), kind: of.kind, causes };
  return statusError(422, 'Invalid', `${kind} "${name}" is invalid: ${list}`, details);
}

/** 422 for wrong list or watch options. */
export function invalidListOptions(errors: readonly FieldError[]): StatusError {
  return invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', errors);
}

/** 410. `continueToken` lets the client continue with an inconsistent list. */
export function expired(message: string, continueToken?: string): StatusError {
  const metadata: JsonObject = continueToken === undefined ? {} : { continue: continueToken };
  return new StatusError({ code: 410, reason: 'Expired', message, metadata });
}

export function unsupportedMediaType(message: string): StatusError {
  return statusError(415, 'UnsupportedMediaType', message, {});
}

export function serviceUnavailable(message: string): StatusError {
  return statusError(503, 'ServiceUnavailable', message);
}

export function internalError(message: string): StatusError {
  return new StatusError({ code: 500, message });
}

function statusError(code: number, reason: string, message: string, details?: JsonObject): StatusError {
  return new StatusError({ code, reason, message, ...(details === undefined ? {} : { details }) });
}

function qualified(resource: Pick<NamedResource, 'group' | 'plural'>): string {
  return resource.group === '' ? resource.plural : `${resource.plural}.${resource.group}`;
}

function detailsOf(resource: NamedResource, name: string): JsonObject {
  return { name, ...groupOf(resource), kind: resource.plural };
}

function groupOf({ group }: Pick<NamedResource, 'group'>): JsonObject {
  return group === '' ? {} : { group };
}

/** An error of one field, as in `details.causes` of a 422. */
export interface FieldError {
  readonly reason:
    | 'FieldValueInvalid'
    | 'FieldValueRequired'
    | 'FieldValueNotSupported'
    | 'FieldValueForbidden'
    | 'FieldValueDuplicate';
  /** For example `spec.ports[0].nodePort`. */
  readonly field: string;
  /** Message of the cause, without the field. */
  readonly detail: string;
}

/** The value is not allowed here. */
export function invalidField(field: string, value: Json | undefined, why: string): FieldError {
  return { reason: 'FieldValueInvalid', field, detail: `Invalid value: ${shown(value)}: ${why}` };
}

export function requiredField(field: string, why = ''): FieldError {
  return { reason: 'FieldValueRequired', field, detail: why === '' ? 'Required value' : `Required value: ${why}` };
}

/** The value is not one of `supported`, which are shown in sorted order. */
export function unsupportedField(field: string, value: Json | undefined, supported: readonly string[]): FieldError {
  const list = [...supported].sort().map((item) => JSON.stringify(item));
  const detail = `Unsupported value: ${shown(value)}: supported values: ${list.join(', ')}`;
  return { reason: 'FieldValueNotSupported', field, detail };
}

export function forbiddenField(field: string, why: string): FieldError {
  return { reason: 'FieldValueForbidden', field, detail: `Forbidden: ${why}` };
}

/** The value occurs twice. */
export function duplicateField(field: string, value: Json): FieldError {
  return { reason: 'FieldValueDuplicate', field, detail: `Duplicate value: ${shown(value)}` };
}

function shown(value: Json | undefined): string {
  return value === undefined ? 'null' : JSON.stringify(value);
}
