import { type FieldError, invalidField, requiredField } from '../field-error.ts';
import { isJsonObject, type Json, type JsonObject, listAt, stringAt, type MutableJsonObject } from '../json.ts';

/** Returns a pod spec with its defaults and those of its containers, for Pods and templates. */
export function setPodSpecDefaults(spec: JsonObject): JsonObject {
  const { containers: _containers, initContainers: _init, ...rest } = spec;
  const result: MutableJsonObject = {
    ...rest,
    containers: listAt(spec, 'containers').map(setContainerDefaults),
    restartPolicy: spec['restartPolicy'] ?? 'Always',
    terminationGracePeriodSeconds: spec['terminationGracePeriodSeconds'] ?? 30,
    dnsPolicy: spec['dnsPolicy'] ?? 'ClusterFirst',
    securityContext: spec['securityContext'] ?? {},
    schedulerName: spec['schedulerName'] ?? 'default-scheduler',
  };
  const init = listAt(spec, 'initContainers');
  if (init.length > 0) result['initContainers'] = init.map(setContainerDefaults);
  return result;
}

/** Returns the errors in the containers of the pod spec at path `at`. */
export function validatePodSpec(spec: JsonObject, at: string): readonly FieldError[] {
  const errors: FieldError[] = [];
  listAt(spec, 'containers').forEach((container, index) => {
    const here = `${at}.containers[${index}]`;
    if (stringAt(container, 'name') === '') errors.push(requiredField(`${here}.name`));
    if (stringAt(container, 'image') === '') errors.push(requiredField(`${here}.image`));
    listAt(container, 'ports').forEach((port, position) => {
      const number = isJsonObject(port) ? port['containerPort'] : undefined;
      if (typeof number === 'number' && number >= 1 && number <= 65_535) return;
      const field = `${here}.ports[${position}].containerPort`;
      errors.push(invalidField(field, number, 'must be between 1 and 65535, inclusive'));
    });
  });
  return errors;
}

function setContainerDefaults(container: Json): Json {
  if (!isJsonObject(container)) return container;
  const result: MutableJsonObject = { ...container };
  const ports = listAt(container, 'ports');
  if (ports.length > 0) {
    result['ports'] = ports.map((port) =>
      isJsonObject(port) ? { ...port, protocol: port['protocol'] ?? 'TCP' } : port,
    );
  }
  result['resources'] ??= {};
  for (const name of ['livenessProbe', 'readinessProbe', 'startupProbe']) {
    const probe = container[name];
    if (isJsonObject(probe)) result[name] = setProbeDefaults(probe);
  }
  result['terminationMessagePath'] ??= '/dev/termination-log';
  result['terminationMessagePolicy'] ??= 'File';
  result['imagePullPolicy'] ??= pullPolicy(stringAt(container, 'image'));
  return result;
}

function setProbeDefaults(probe: JsonObject): JsonObject {
  const result: MutableJsonObject = {
    timeoutSeconds: 1,
    periodSeconds: 10,
    successThreshold: 1,
    failureThreshold: 3,
    ...probe,
  };
  const http = probe['httpGet'];
  if (isJsonObject(http)) result['httpGet'] = { path: '/', scheme: 'HTTP', ...http };
  return result;
}

function pullPolicy(image: string): string {
  const name = image.slice(image.lastIndexOf('/') + 1);
  return !name.includes(':') || name.endsWith(':latest') ? 'Always' : 'IfNotPresent';
}
