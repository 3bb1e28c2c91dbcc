import { ipFamilyOf, tryParseCidr, tryParseIp } from '@switchyard/core';
import {
  duplicateField,
  type FieldError,
  forbiddenField,
  invalidField,
  requiredField,
  unsupportedField,
} from '../status-error.ts';
import {
  isJsonObject,
  type Json,
  jsonEqual,
  type JsonObject,
  listAt,
  numberAt,
  objectAt,
  stringAt,
  valueAt,
} from '../json.ts';
import { nodePortRange } from '../allocations.ts';
import type { ResourceContext } from '../resource.ts';

const types = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'];
const policies = ['Cluster', 'Local'];

/** Returns all errors of a Service, in kube-apiserver's order. */
export function validateService(
  object: JsonObject,
  previous: JsonObject | undefined,
  context: ResourceContext,
): readonly FieldError[] {
  const spec = objectAt(object, 'spec');
  const before = previous === undefined ? undefined : objectAt(previous, 'spec');
  return [
    ...(before === undefined ? [] : validateChange(spec, before)),
    ...validatePorts(spec),
    ...validateEnums(spec),
    ...validateLists(spec),
    ...validateFamilies(spec, context),
    ...validateClaims(spec, before, context),
  ];
}

function validateChange(spec: JsonObject, before: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const stays = spec['type'] !== 'ExternalName' && before['type'] !== 'ExternalName';
  const ips = listAt(spec, 'clusterIPs');
  const old = listAt(before, 'clusterIPs');
  if (stays && old[0] !== undefined && ips[0] !== old[0]) {
    errors.push(invalidField('spec.clusterIPs[0]', ips, 'may not change once set'));
  }
  const stayed = spec['type'] === 'LoadBalancer' && before['type'] === 'LoadBalancer';
  if (stayed && !jsonEqual(spec['loadBalancerClass'], before['loadBalancerClass'])) {
    errors.push(invalidField('spec.loadBalancerClass', spec['loadBalancerClass'], 'may not change once set'));
  }
  const health = before['healthCheckNodePort'];
  const isStillLocal = stayed && spec['externalTrafficPolicy'] === 'Local';
  if (isStillLocal && health !== undefined && spec['healthCheckNodePort'] !== health) {
    errors.push(invalidField('spec.healthCheckNodePort', spec['healthCheckNodePort'], 'field is immutable'));
  }
  return errors;
}

function validatePorts(spec: JsonObject): readonly FieldError[] {
  const ports = listAt(spec, 'ports');
  const isHeadless = spec['clusterIP'] === 'None';
  if (ports.length === 0) {
    return isHeadless || spec['type'] === 'ExternalName' ? [] : [requiredField('spec.ports')];
  }
  const errors: FieldError[] = [];
  const names = new Set<string>();
  const numbers = new Set<string>();
  ports.forEach((port, index) => {
    const at = `spec.ports[${index}]`;
    const name = stringAt(port, 'name');
    if (name === '' && ports.length > 1) errors.push(requiredField(`${at}.name`));
    else if (name !== '' && names.has(name)) errors.push(duplicateField(`${at}.name`, name));
    names.add(name);
    errors.push(...validatePort(port, at));
    const identity = `${stringAt(port, 'protocol')}/${String(valueAt(port, 'port'))}`;
    if (numbers.has(identity)) errors.push(duplicateField(at, port));
    numbers.add(identity);
    if (numberAt(port, 'nodePort') !== undefined && (spec['type'] === 'ClusterIP' || spec['type'] === 'ExternalName')) {
      errors.push(forbiddenField(`${at}.nodePort`, `may not be used when \`type\` is '${stringAt(spec, 'type')}'`));
    }
  });
  return errors;
}

function validatePort(port: Json, at: string): readonly FieldError[] {
  const errors: FieldError[] = [];
  const range = 'must be between 1 and 65535, inclusive';
  const isPort = (value: number): boolean => value >= 1 && value <= 65_535;
  const number = numberAt(port, 'port') ?? 0;
  if (!isPort(number)) errors.push(invalidField(`${at}.port`, number, range));
  const protocol = stringAt(port, 'protocol');
  if (!['TCP', 'UDP', 'SCTP'].includes(protocol)) {
    errors.push(unsupportedField(`${at}.protocol`, protocol, ['SCTP', 'TCP', 'UDP']));
  }
  const target = isJsonObject(port) ? port['targetPort'] : undefined;
  if (typeof target === 'number' && !isPort(target)) errors.push(invalidField(`${at}.targetPort`, target, range));
  return errors;
}

function validateEnums(spec: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const check = (field: string, allowed: readonly string[]): void => {
    const value = spec[field];
    if (value !== undefined && !allowed.includes(String(value))) {
      errors.push(unsupportedField(`spec.${field}`, value, allowed));
    }
  };
  check('sessionAffinity', ['ClientIP', 'None']);
  check('type', types);
  check('externalTrafficPolicy', policies);
  check('internalTrafficPolicy', policies);
  check('ipFamilyPolicy', ['SingleStack', 'PreferDualStack', 'RequireDualStack']);
  check('trafficDistribution', ['PreferClose', 'PreferSameZone', 'PreferSameNode']);
  const timeout = numberAt(spec, 'sessionAffinityConfig', 'clientIP', 'timeoutSeconds');
  if (timeout !== undefined && (timeout < 1 || timeout > 86_400)) {
    const field = 'spec.sessionAffinityConfig.clientIP.timeoutSeconds';
    errors.push(invalidField(field, timeout, 'must be greater than 0 and less than 86400'));
  }
  if (spec['type'] === 'ExternalName' && stringAt(spec, 'externalName') === '') {
    errors.push(requiredField('spec.externalName'));
  }
  if (spec['type'] === 'LoadBalancer' && spec['clusterIP'] === 'None') {
    errors.push(invalidField('spec.clusterIPs[0]', 'None', "may not be set to 'None' for LoadBalancer services"));
  }
  if (spec['type'] === 'NodePort' && spec['clusterIP'] === 'None') {
    errors.push(invalidField('spec.clusterIPs[0]', 'None', "may not be set to 'None' for NodePort services"));
  }
  return errors;
}

function validateLists(spec: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  listAt(spec, 'externalIPs').forEach((ip, index) => {
    if (tryParseIp(String(ip)) !== undefined) return;
    const why = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
    errors.push(invalidField(`spec.externalIPs[${index}]`, ip, why));
  });
  listAt(spec, 'loadBalancerSourceRanges').forEach((range, index) => {
    if (tryParseCidr(String(range)) !== undefined) return;
    const why = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';
    errors.push(invalidField(`spec.loadBalancerSourceRanges[${index}]`, range, why));
  });
  const health = spec['healthCheckNodePort'];
  const wantsHealth = spec['type'] === 'LoadBalancer' && spec['externalTrafficPolicy'] === 'Local';
  if (health !== undefined && !wantsHealth) {
    const why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
    errors.push(invalidField('spec.healthCheckNodePort', health, why));
  }
  return errors;
}

function validateFamilies(spec: JsonObject, context: ResourceContext): readonly FieldError[] {
  if (spec['type'] === 'ExternalName') return [];
  const errors: FieldError[] = [];
  const families = listAt(spec, 'ipFamilies').map(String);
  families.forEach((family, index) => {
    if (family !== 'IPv4' && family !== 'IPv6') {
      errors.push(unsupportedField(`spec.ipFamilies[${index}]`, family, ['IPv4', 'IPv6']));
    } else if (!context.allocations.families.includes(family) && spec['clusterIP'] !== 'None') {
      errors.push(invalidField(`spec.ipFamilies[${index}]`, family, 'not configured on this cluster'));
    }
  });
  if (spec['ipFamilyPolicy'] === 'RequireDualStack' && context.allocations.families.length < 2) {
    const why = 'this cluster is not configured for dual-stack services';
    errors.push(invalidField('spec.ipFamilyPolicy', 'RequireDualStack', why));
  }
  listAt(spec, 'clusterIPs').forEach((text, index) => {
    if (text === 'None') return;
    const ip = tryParseIp(String(text));
    if (ip === undefined) {
      const why = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
      errors.push(invalidField(`spec.clusterIPs[${index}]`, text, why));
    } else if (families[index] !== undefined && ipFamilyOf(ip) !== families[index]) {
      const why = `expected an ${families[index]} value as indicated by \`ipFamilies[${index}]\``;
      errors.push(invalidField(`spec.clusterIPs[${index}]`, text, why));
    }
  });
  return errors;
}

/** Addresses and node ports that another object holds. */
function validateClaims(
  spec: JsonObject,
  before: JsonObject | undefined,
  context: ResourceContext,
): readonly FieldError[] {
  const errors: FieldError[] = [];
  const { allocations } = context;
  const oldIps = listAt(before, 'clusterIPs');
  const ips = listAt(spec, 'clusterIPs');
  for (const text of ips) {
    const ip = tryParseIp(String(text));
    if (ip === undefined || oldIps.includes(text)) continue;
    const why = allocations.isInRange(ip)
      ? allocations.isTaken(`ip/${ip}`)
        ? 'provided IP is already allocated'
        : undefined
      : 'the provided network does not match the current range';
    if (why !== undefined) {
      errors.push(invalidField('spec.clusterIPs', ips, `failed to allocate IP ${ip}: ${why}`));
    }
  }
  const oldPorts = new Set(listAt(before, 'ports').map((port) => portClaim(port)));
  listAt(spec, 'ports').forEach((port, index) => {
    const nodePort = numberAt(port, 'nodePort');
    if (nodePort === undefined || oldPorts.has(portClaim(port))) return;
    const field = `spec.ports[${index}].nodePort`;
    if (nodePort < nodePortRange.first || nodePort > nodePortRange.last) {
      const range = `${nodePortRange.first}-${nodePortRange.last}`;
      errors.push(
        invalidField(field, nodePort, `provided port is not in the valid range. The range of valid ports is ${range}`),
      );
    } else if (allocations.isTaken(portClaim(port)) || allocations.isTaken(`port/health/${nodePort}`)) {
      errors.push(invalidField(field, nodePort, 'provided port is already allocated'));
    }
  });
  return errors;
}

function portClaim(port: Json): string {
  return `port/${stringAt(port, 'protocol')}/${String(valueAt(port, 'nodePort'))}`;
}
