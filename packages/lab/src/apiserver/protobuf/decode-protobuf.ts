import { millis } from '@switchyard/core';
import { apiTime } from '../../workloads/time-scale.ts';
import { type Json, type JsonObject, listAt, type MutableJsonObject, objectAt } from '../json.ts';
import type { ObjectSchema, Schema } from '../schema/schema.ts';
import { fieldName, protobufKinds } from './messages.ts';
import { readFields, type WireField } from './wire.ts';

/** Every protobuf body of the Kubernetes API starts with these bytes, then an envelope with kind and payload. */
const magic = 'k8s\0';

/**
 * Returns a protobuf body as JSON object with `kind` and `apiVersion`; undefined if the server does not read the kind in
 * this form. Throws `RangeError` for a malformed body.
 */
export function decodeProtobuf(body: Uint8Array): JsonObject | undefined {
  if (Buffer.from(body.subarray(0, 4)).toString('latin1') !== magic) {
    throw new RangeError('malformed protobuf: the body does not start with the Kubernetes prefix');
  }
  const envelope = readFields(body.subarray(4));
  const type = readFields(bytesOf(envelope, 1));
  const [apiVersion, kind] = [textOf(bytesOf(type, 1)), textOf(bytesOf(type, 2))];
  const schema = protobufKinds[kind];
  return (
    schema && { ...(apiVersion === '' ? {} : { apiVersion }), kind, ...decodeMessage(schema, bytesOf(envelope, 2)) }
  );
}

function decodeMessage(schema: ObjectSchema, bytes: Uint8Array): JsonObject {
  const result: MutableJsonObject = {};
  for (const { number, value } of readFields(bytes)) {
    const name = fieldName(schema.type, number) ?? '-';
    const field = schema.fields[name];
    if (field === undefined) continue;
    const old = result[name];
    if (times.has(name)) result[name] = timeText(value);
    else if (field.kind === 'map') result[name] = { ...objectAt(old), ...mapEntry(value) };
    else if (field.kind === 'list') result[name] = [...listAt(old), decodeValue(field.items, value)];
    else result[name] = decodeValue(field, value);
  }
  return result;
}

/** Strings in JSON, messages in protobuf. */
const times = new Set(['creationTimestamp', 'deletionTimestamp']);

function decodeValue(schema: Schema, value: WireField['value']): Json {
  if (typeof value === 'bigint') return schema.kind === 'bool' ? value !== 0n : Number(BigInt.asIntN(64, value));
  if (schema.kind === 'intOrString') return intOrString(value);
  return schema.kind === 'object' ? decodeMessage(schema, value) : textOf(value);
}

/** A message of a key and a value. */
function mapEntry(bytes: WireField['value']): JsonObject {
  const fields = readFields(bytesIn(bytes));
  return { [textOf(bytesOf(fields, 1))]: textOf(bytesOf(fields, 2)) };
}

/** A message of seconds since the epoch; an absent time has none. */
function timeText(bytes: WireField['value']): Json {
  const seconds = numberOf(readFields(bytesIn(bytes)), 1);
  return seconds === undefined ? null : apiTime(millis(seconds * 1000));
}

/** A message of the type, the number and the text. */
function intOrString(bytes: Uint8Array): Json {
  const fields = readFields(bytes);
  return numberOf(fields, 1) === 1 ? textOf(bytesOf(fields, 3)) : (numberOf(fields, 2) ?? 0);
}

function bytesOf(fields: readonly WireField[], number: number): Uint8Array {
  return bytesIn(fields.findLast((field) => field.number === number)?.value);
}

function bytesIn(value: WireField['value'] | undefined): Uint8Array {
  return value instanceof Uint8Array ? value : new Uint8Array();
}

function numberOf(fields: readonly WireField[], number: number): number | undefined {
  const value = fields.findLast((field) => field.number === number)?.value;
  return typeof value === 'bigint' ? Number(BigInt.asIntN(64, value)) : undefined;
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('utf8');
}
