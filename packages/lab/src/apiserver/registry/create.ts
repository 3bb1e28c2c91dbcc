import { randomUUID } from 'node:crypto';
import { nameSuffix } from '../../workloads/template-hash.ts';
import { type JsonObject, type MutableJsonObject, objectAt, stringAt, withFields } from '../json.ts';
import type { ResourceDefinition } from '../resource.ts';
import { namespaces } from '../resources/namespaces.ts';
import { alreadyExists, badRequest, invalid, notFound, StatusError } from '../status-error.ts';
import { storedObject } from '../store/stored-object.ts';
import { decodeBody } from './decode-body.ts';
import type { RegistryContext, WriteOptions, WriteResult } from './registry.ts';
import { resourceContext, timestamp } from './registry-context.ts';
import { validateMeta } from './validate-meta.ts';

interface Creation {
  readonly namespace: string;
  readonly body: JsonObject;
  readonly options: WriteOptions;
}

/** Creates one object. */
export function createObject(context: RegistryContext, resource: ResourceDefinition, creation: Creation): WriteResult {
  const { namespace, options } = creation;
  const decoded = decodeBody(resource, creation.body, options.fieldValidation);
  checkNamespace(context, resource, namespace, decoded.value);
  const metadata = newMetadata(context, resource, namespace, objectAt(decoded.value, 'metadata'));
  const withStatus =
    resource.initialStatus === undefined
      ? decoded.value
      : withFields(decoded.value, { status: resource.initialStatus(decoded.value) });
  const inner = resourceContext(context);
  const defaulted = resource.setDefaults({ ...withStatus, metadata }, undefined, inner);
  const object = resource.setStatusDefaults(defaulted);
  const name = stringAt(object, 'metadata', 'name');
  const errors = [...validateMeta(resource, object), ...resource.validate(object, undefined, inner)];
  if (errors.length > 0) throw invalid(resource, name, errors);
  if (context.store.get(resource, namespace, name) !== undefined) throw alreadyExists(resource, name);
  const stored =
    options.isDryRun === true ? storedObject(resource, object, undefined) : context.store.put(resource, object);
  return { object: stored, warnings: decoded.warnings };
}

function newMetadata(
  context: RegistryContext,
  resource: ResourceDefinition,
  namespace: string,
  given: JsonObject,
): JsonObject {
  const generateName = stringAt(given, 'generateName');
  const name = stringAt(given, 'name') || (generateName === '' ? '' : generateName + nameSuffix(context.random));
  const { deletionTimestamp: _d, deletionGracePeriodSeconds: _g, generation: _n, ...rest } = given;
  const metadata: MutableJsonObject = { ...rest, name, uid: randomUUID(), creationTimestamp: timestamp(context) };
  if (resource.isNamespaced) metadata['namespace'] = namespace;
  else delete metadata['namespace'];
  if (resource.hasGeneration) metadata['generation'] = 1;
  return metadata;
}

function checkNamespace(
  context: RegistryContext,
  resource: ResourceDefinition,
  namespace: string,
  object: JsonObject,
): void {
  if (!resource.isNamespaced) return;
  const given = stringAt(object, 'metadata', 'namespace');
  if (given !== '' && given !== namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
  const found = context.store.get(namespaces, '', namespace);
  if (found === undefined) throw notFound(namespaces, namespace);
  if (stringAt(found.value, 'metadata', 'deletionTimestamp') === '') return;
  const name = stringAt(object, 'metadata', 'name');
  const message = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const cause = {
    reason: 'NamespaceTerminating',
    message: `namespace ${namespace} is being terminated`,
    field: 'metadata.namespace',
  };
  throw new StatusError({
    code: 403,
    reason: 'Forbidden',
    message: `${resource.plural} "${name}" is forbidden: ${message}`,
    details: { name, kind: resource.plural, causes: [cause] },
  });
}
