import { millis } from '@switchyard/core';
import { namespaces } from './resources/cluster-kinds.ts';
import { deployments } from './resources/deployments.ts';
import { services } from './resources/services.ts';
import { flag, longPointer, object, type ObjectSchema, type Schema, text, textList } from './schema.ts';
import { apiTime } from '../workloads/facts.ts';
import { type Json, type JsonObject, listAt, type MutableJsonObject, objectAt } from './json.ts';

const deleteOptions = object('DeleteOptions', {
  gracePeriodSeconds: longPointer,
  preconditions: object('Preconditions', { uid: text, resourceVersion: text }),
  orphanDependents: flag,
  propagationPolicy: text,
  dryRun: textList,
});

/** The kinds that `kubectl create KIND` and `kubectl drain` send as protobuf, by kind. */
const protobufKinds: Readonly<Record<string, ObjectSchema>> = {
  Namespace: namespaces.schema,
  Service: services.schema,
  Deployment: deployments.schema,
  DeleteOptions: deleteOptions,
};

/**
 * Names in JSON of the fields of each type, from field number 1 on; `-` for a number that is not read. Only what those commands can
 * set: a field that is not listed is dropped.
 */
const fieldNames: Readonly<Record<string, string>> = {
  Namespace: 'metadata',
  Service: 'metadata spec',
  Deployment: 'metadata spec',
  DeleteOptions: 'gracePeriodSeconds preconditions orphanDependents propagationPolicy dryRun',
  Preconditions: 'uid resourceVersion',
  ObjectMeta:
    'name generateName namespace - uid resourceVersion generation creationTimestamp deletionTimestamp ' +
    'deletionGracePeriodSeconds labels annotations ownerReferences finalizers',
  OwnerReference: 'kind - name uid apiVersion controller blockOwnerDeletion',
  ServiceSpec:
    'ports selector clusterIP type externalIPs - sessionAffinity loadBalancerIP loadBalancerSourceRanges externalName ' +
    'externalTrafficPolicy healthCheckNodePort publishNotReadyAddresses sessionAffinityConfig - - ipFamilyPolicy clusterIPs ' +
    'ipFamilies allocateLoadBalancerNodePorts loadBalancerClass internalTrafficPolicy trafficDistribution',
  ServicePort: 'name protocol port targetPort nodePort appProtocol',
  SessionAffinityConfig: 'clientIP',
  ClientIPConfig: 'timeoutSeconds',
  DeploymentSpec: 'replicas selector template - minReadySeconds revisionHistoryLimit paused - progressDeadlineSeconds',
  LabelSelector: 'matchLabels',
  PodTemplateSpec: 'metadata spec',
  PodSpec: '- containers restartPolicy terminationGracePeriodSeconds - dnsPolicy nodeSelector - - nodeName',
  Container: 'name image command args workingDir ports env - - - - - - imagePullPolicy',
  ContainerPort: 'name hostPort containerPort protocol hostIP',
  EnvVar: 'name value',
};

const namesByType = new Map(Object.entries(fieldNames).map(([type, names]) => [type, names.split(' ')]));

/** Name of field `number` of a type; undefined for one that is not read. */
function fieldName(type: string, number: number): string | undefined {
  return namesByType.get(type)?.[number - 1];
}

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

/** One field as it stands in a protobuf message. */
interface WireField {
  readonly number: number;
  /** A varint for wire type 0, the bytes for wire type 2. Other wire types are skipped. */
  readonly value: bigint | Uint8Array;
}

/** Reads the fields of one message; throws `RangeError` when it is cut off or malformed. */
function readFields(bytes: Uint8Array): readonly WireField[] {
  const fields: WireField[] = [];
  let offset = 0;
  const varint = (): bigint => {
    let result = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[offset++];
      if (byte === undefined) break;
      result |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return result;
    }
    throw new RangeError(`malformed protobuf: no end of a number at byte ${offset}`);
  };
  while (offset < bytes.length) {
    const tag = Number(varint());
    const number = tag >> 3;
    const type = tag & 7;
    if (type === 0) fields.push({ number, value: varint() });
    else if (type === 2) {
      const length = Number(varint());
      if (offset + length > bytes.length) throw new RangeError(`malformed protobuf: field ${number} is cut off`);
      fields.push({ number, value: bytes.subarray(offset, offset + length) });
      offset += length;
    } else if (type === 1 || type === 5) offset += type === 1 ? 8 : 4;
    else throw new RangeError(`malformed protobuf: wire type ${type} at byte ${offset}`);
  }
  return fields;
}
