import type { Json, JsonObject, MutableJsonObject } from '../json.ts';
import { type FieldType, type Message, protobufMessages } from './messages.ts';
import { readFields, type WireField } from './wire.ts';

/** Every protobuf body of the Kubernetes API starts with these bytes, then an envelope with kind and payload. */
const magic = 'k8s\0';

/**
 * A protobuf body as JSON object with `kind` and `apiVersion`; undefined when it is of a kind that the server
 * does not read in this form. Throws `RangeError` for what is not such a body at all.
 */
export function decodeProtobuf(body: Uint8Array): JsonObject | undefined {
  if (Buffer.from(body.subarray(0, 4)).toString('latin1') !== magic) {
    throw new RangeError('malformed protobuf: the body does not start with the Kubernetes prefix');
  }
  const envelope = readFields(body.subarray(4));
  const type = decodeMessage({ 1: ['apiVersion', 'string'], 2: ['kind', 'string'] }, bytesOf(envelope, 1));
  const message = protobufMessages[String(type['kind'])];
  return message === undefined ? undefined : { ...type, ...decodeMessage(message, bytesOf(envelope, 2)) };
}

function bytesOf(fields: readonly WireField[], number: number): Uint8Array {
  const value = fields.find((field) => field.number === number)?.value;
  return value instanceof Uint8Array ? value : new Uint8Array();
}

function decodeMessage(message: Message, bytes: Uint8Array): JsonObject {
  const result: MutableJsonObject = {};
  for (const { number, value } of readFields(bytes)) {
    const known = message[number];
    if (known === undefined) continue;
    const [name, type, repeats] = known;
    if (type === 'stringMap') result[name] = { ...(result[name] as JsonObject), ...mapEntry(value) };
    else if (repeats === 'list')
      result[name] = [...((result[name] as readonly Json[] | undefined) ?? []), decodeValue(type, value)];
    else result[name] = decodeValue(type, value);
  }
  return result;
}

function decodeValue(type: FieldType, value: bigint | Uint8Array): Json {
  if (typeof value === 'bigint') return type === 'bool' ? value !== 0n : Number(BigInt.asIntN(64, value));
  if (type === 'time') return timeText(value);
  if (type === 'intOrString') return intOrString(value);
  if (typeof type === 'object') return decodeMessage(type.message, value);
  return Buffer.from(value).toString('utf8');
}

function mapEntry(value: bigint | Uint8Array): JsonObject {
  if (typeof value === 'bigint') return {};
  const { key, value: text } = decodeMessage({ 1: ['key', 'string'], 2: ['value', 'string'] }, value);
  return { [String(key)]: text ?? '' };
}

/** An absent time is a message without seconds. */
function timeText(bytes: Uint8Array): Json {
  const seconds = decodeMessage({ 1: ['seconds', 'int'] }, bytes)['seconds'];
  return typeof seconds === 'number' ? `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z` : null;
}

function intOrString(bytes: Uint8Array): Json {
  const fields = decodeMessage({ 1: ['type', 'int'], 2: ['number', 'int'], 3: ['text', 'string'] }, bytes);
  return fields['type'] === 1 ? (fields['text'] ?? '') : (fields['number'] ?? 0);
}
