import type { JsonObject } from '../json.ts';
import { apiVersionOf, type ResourceDefinition } from '../resource.ts';
import { decode } from '../schema/decode.ts';
import { badRequest } from '../status-error.ts';
import type { WriteOptions } from './registry.ts';

/** `body` with known fields only, and warnings about the others; wrong types or kinds reject with a 400 Status. */
export function decodeBody(
  resource: ResourceDefinition,
  body: JsonObject,
  fieldValidation: WriteOptions['fieldValidation'],
): { readonly value: JsonObject; readonly warnings: readonly string[] } {
  const apiVersion = apiVersionOf(resource);
  const kind = body['kind'] ?? resource.kind;
  const version = body['apiVersion'] ?? apiVersion;
  if (kind !== resource.kind || version !== apiVersion) {
    throw badRequest(
      `the API version in the data (${String(version)}, Kind=${String(kind)}) does not match the expected API version (${apiVersion}, Kind=${resource.kind})`,
    );
  }
  const { value, unknownFields, typeError } = decode(resource.schema, body);
  const prefix = `${resource.kind} in version "${resource.version}" cannot be handled as a ${resource.kind}`;
  if (typeError !== undefined) throw badRequest(`${prefix}: ${typeError}`);
  const texts = unknownFields.map((field) => `unknown field "${field}"`);
  if (texts.length > 0 && fieldValidation === 'Strict') {
    throw badRequest(`${prefix}: strict decoding error: ${texts.join(', ')}`);
  }
  return { value, warnings: fieldValidation === 'Warn' ? texts : [] };
}
