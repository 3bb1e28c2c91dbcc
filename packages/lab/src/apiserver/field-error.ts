import type { Json } from './json.ts';

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

/** The value is missing. */
export function requiredField(field: string, why = ''): FieldError {
  return { reason: 'FieldValueRequired', field, detail: why === '' ? 'Required value' : `Required value: ${why}` };
}

/** The value is not one of `supported`, which are shown in sorted order. */
export function unsupportedField(field: string, value: Json | undefined, supported: readonly string[]): FieldError {
  const list = [...supported].sort().map((item) => JSON.stringify(item));
  const detail = `Unsupported value: ${shown(value)}: supported values: ${list.join(', ')}`;
  return { reason: 'FieldValueNotSupported', field, detail };
}

/** The field may not be set. */
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
