import * as client from '@kubernetes/client-node';
import { DaemonSet, Deployment } from 'kubernetes-models/apps/v1';
import { ClusterRole, ClusterRoleBinding, Role, RoleBinding } from 'kubernetes-models/rbac.authorization.k8s.io/v1';
import { ConfigMap, Service, ServiceAccount } from 'kubernetes-models/v1';
import type { KubeObject } from './kube-object.ts';

/** One field of a type that is generated from Kubernetes' OpenAPI document. */
interface Field {
  /** As in JSON. */
  readonly baseName: string;
  readonly type: string;
}

/** Required fields, types, formats and quantities: a schema per kind, generated from the OpenAPI document. */
const schemas: Readonly<Record<string, new (data: never) => { validate(): void }>> = {
  'apps/v1 DaemonSet': DaemonSet,
  'apps/v1 Deployment': Deployment,
  'rbac.authorization.k8s.io/v1 ClusterRole': ClusterRole,
  'rbac.authorization.k8s.io/v1 ClusterRoleBinding': ClusterRoleBinding,
  'rbac.authorization.k8s.io/v1 Role': Role,
  'rbac.authorization.k8s.io/v1 RoleBinding': RoleBinding,
  'v1 ConfigMap': ConfigMap,
  'v1 Service': Service,
  'v1 ServiceAccount': ServiceAccount,
};

/**
 * Violations of Kubernetes' OpenAPI document in an object, as `path: what`; empty for none. Those schemas let
 * unknown fields pass, as the document itself does, so every field is also looked up in the types of 1.36.
 */
export function schemaFaults(object: KubeObject): readonly string[] {
  const kind = `${object.apiVersion} ${object.kind}`;
  const Schema = schemas[kind];
  if (Schema === undefined) return [`${kind}: no schema is known here; add it to check-schema.ts`];
  const faults = [...unknownFields(object, `V1${object.kind}`, '')];
  try {
    new Schema(structuredClone(object) as never).validate();
  } catch (error) {
    faults.push(error instanceof Error ? error.message : String(error));
  }
  return faults;
}

function* unknownFields(value: unknown, type: string, path: string): Generator<string> {
  const item = /^Array<(.*)>$/.exec(type)?.[1];
  if (item !== undefined) {
    if (!Array.isArray(value)) return yield `${path}: a list is wanted, of ${item}`;
    for (const [index, one] of value.entries()) yield* unknownFields(one, item, `${path}[${index}]`);
    return;
  }
  const values = /^\{ \[key: string\]: (.*); \}$/.exec(type)?.[1];
  if (values !== undefined) {
    if (!isObject(value)) return yield `${path}: an object is wanted`;
    for (const [key, one] of Object.entries(value)) yield* unknownFields(one, values, `${path}.${key}`);
    return;
  }
  const fields = fieldsOf(type);
  if (fields === undefined) return yield* wrongScalar(value, type, path);
  if (!isObject(value)) return yield `${path}: an object is wanted, a ${type}`;
  for (const [key, one] of Object.entries(value)) {
    const field = fields.find(({ baseName }) => baseName === key);
    if (field === undefined) yield `${path}.${key}: unknown field of ${type}`;
    else yield* unknownFields(one, field.type, `${path}.${key}`);
  }
}

function* wrongScalar(value: unknown, type: string, path: string): Generator<string> {
  switch (type) {
    case 'string':
    case 'number':
    case 'boolean':
      if (typeof value !== type) yield `${path}: a ${type} is wanted, not ${JSON.stringify(value)}`;
      return;
    case 'IntOrString':
      if (typeof value !== 'string' && !Number.isInteger(value)) yield `${path}: a number or a text is wanted`;
      return;
    default:
      yield `${path}: fields of type ${type} are not checked here; add it to check-schema.ts`;
  }
}

function fieldsOf(type: string): readonly Field[] | undefined {
  const model = (
    client as unknown as Readonly<Record<string, { getAttributeTypeMap?(): readonly Field[] } | undefined>>
  )[type];
  return model?.getAttributeTypeMap?.();
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
