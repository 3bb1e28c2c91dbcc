import { ipFamilyOf, tryParseCidr, tryParseIp, isEqual } from '@switchyard/core';
import { nodePortRange } from '../allocations.ts';
import { type Json, type JsonObject, listAt, numberAt, objectAt, stringAt, valueAt } from '../json.ts';
import type { ResourceContext } from '../resource.ts';
import {
  duplicateField,
  type FieldError,
  forbiddenField,
  invalidField,
  requiredField,
  unsupportedField,
} from '../status-error.ts';

type Errors = Generator<FieldError, void>;

const policies = ['Cluster', 'Local'];
/** Legal values of the fields that have some, in the order of the checks. */
const enums: Readonly<Record<string, readonly string[]>> = {
  sessionAffinity: ['ClientIP', 'None'],
  type: ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'],
  externalTrafficPolicy: policies,
  internalTrafficPolicy: policies,
  ipFamilyPolicy: ['SingleStack', 'PreferDualStack', 'RequireDualStack'],
  trafficDistribution: ['PreferClose', 'PreferSameZone', 'PreferSameNode'],
};
const ipText = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
const cidrText = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';

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

function* validateChange(spec: JsonObject, before: JsonObject): Errors {
  const stays = spec['type'] !== 'ExternalName' && before['type'] !== 'ExternalName';
  const ips = listAt(spec, 'clusterIPs');
  const old = listAt(before, 'clusterIPs');
  if (stays && old[0] !== undefined && ips[0] !== old[0]) {
    yield invalidField('spec.clusterIPs[0]', ips, 'may not change once set');
  }
  const stayed = spec['type'] === 'LoadBalancer' && before['type'] === 'LoadBalancer';
  if (stayed && !isEqual(spec['loadBalancerClass'], before['loadBalancerClass'])) {
    yield invalidField('spec.loadBalancerClass', spec['loadBalancerClass'], 'may not change once set');
  }
  const health = before['healthCheckNodePort'];
  const isStillLocal = stayed && spec['externalTrafficPolicy'] === 'Local';
  if (isStillLocal && health !== undefined && spec['healthCheckNodePort'] !== health) {
    yield invalidField('spec.healthCheckNodePort', spec['healthCheckNodePort'], 'field is immutable');
  }
}

function* validatePorts(spec: JsonObject): Errors {
  const ports = listAt(spec, 'ports');
  const { type } = spec;
  if (ports.length === 0 && spec['clusterIP'] !== 'None' && type !== 'ExternalName') yield requiredField('spec.ports');
  const names = new Set<string>();
  const numbers = new Set<string>();
  for (const [index, port] of ports.entries()) {
    const at = `spec.ports[${index}]`;
    const name = stringAt(port, 'name');
    if (name === '' && ports.length > 1) yield requiredField(`${at}.name`);
    else if (name !== '' && names.has(name)) yield duplicateField(`${at}.name`, name);
    names.add(name);
    yield* validatePort(port, at);
    const identity = `${stringAt(port, 'protocol')}/${String(valueAt(port, 'port'))}`;
    if (numbers.has(identity)) yield duplicateField(at, port);
    numbers.add(identity);
    if (numberAt(port, 'nodePort') !== undefined && (type === 'ClusterIP' || type === 'ExternalName')) {
      yield forbiddenField(`${at}.nodePort`, `may not be used when \`type\` is '${type}'`);
    }
  }
}

function* validatePort(port: Json, at: string): Errors {
  const range = 'must be between 1 and 65535, inclusive';
  const isPort = (value: number): boolean => value >= 1 && value <= 65_535;
  const number = numberAt(port, 'port') ?? 0;
  if (!isPort(number)) yield invalidField(`${at}.port`, number, range);
  const protocol = stringAt(port, 'protocol');
  if (!['TCP', 'UDP', 'SCTP'].includes(protocol)) {
    yield unsupportedField(`${at}.protocol`, protocol, ['SCTP', 'TCP', 'UDP']);
  }
  const target = numberAt(port, 'targetPort');
  if (target !== undefined && !isPort(target)) yield invalidField(`${at}.targetPort`, target, range);
}

function* validateEnums(spec: JsonObject): Errors {
  for (const [field, allowed] of Object.entries(enums)) {
    const value = spec[field];
    if (value !== undefined && !allowed.includes(String(value)))
      yield unsupportedField(`spec.${field}`, value, allowed);
  }
  const timeout = numberAt(spec, 'sessionAffinityConfig', 'clientIP', 'timeoutSeconds');
  if (timeout !== undefined && (timeout < 1 || timeout > 86_400)) {
    const field = 'spec.sessionAffinityConfig.clientIP.timeoutSeconds';
    yield invalidField(field, timeout, 'must be greater than 0 and less than 86400');
  }
  const { type } = spec;
  if (type === 'ExternalName' && stringAt(spec, 'externalName') === '') yield requiredField('spec.externalName');
  if ((type === 'LoadBalancer' || type === 'NodePort') && spec['clusterIP'] === 'None') {
    yield invalidField('spec.clusterIPs[0]', 'None', `may not be set to 'None' for ${type} services`);
  }
}

function* validateLists(spec: JsonObject): Errors {
  for (const [index, ip] of listAt(spec, 'externalIPs').entries()) {
    if (tryParseIp(String(ip)) === undefined) yield invalidField(`spec.externalIPs[${index}]`, ip, ipText);
  }
  for (const [index, range] of listAt(spec, 'loadBalancerSourceRanges').entries()) {
    if (tryParseCidr(String(range)) !== undefined) continue;
    yield invalidField(`spec.loadBalancerSourceRanges[${index}]`, range, cidrText);
  }
  const health = spec['healthCheckNodePort'];
  const wantsHealth = spec['type'] === 'LoadBalancer' && spec['externalTrafficPolicy'] === 'Local';
  if (health !== undefined && !wantsHealth) {
    const why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
    yield invalidField('spec.healthCheckNodePort', health, why);
  }
}

function* validateFamilies(spec: JsonObject, { allocations }: ResourceContext): Errors {
  if (spec['type'] === 'ExternalName') return;
  const families = listAt(spec, 'ipFamilies').map(String);
  for (const [index, family] of families.entries()) {
    if (family !== 'IPv4' && family !== 'IPv6') {
      yield unsupportedField(`spec.ipFamilies[${index}]`, family, ['IPv4', 'IPv6']);
    } else if (!allocations.families.includes(family) && spec['clusterIP'] !== 'None') {
      yield invalidField(`spec.ipFamilies[${index}]`, family, 'not configured on this cluster');
    }
  }
  if (spec['ipFamilyPolicy'] === 'RequireDualStack' && allocations.families.length < 2) {
    const why = 'this cluster is not configured for dual-stack services';
    yield invalidField('spec.ipFamilyPolicy', 'RequireDualStack', why);
  }
  for (const [index, text] of listAt(spec, 'clusterIPs').entries()) {
    if (text === 'None') continue;
    const ip = tryParseIp(String(text));
    const family = families[index];
    if (ip === undefined) yield invalidField(`spec.clusterIPs[${index}]`, text, ipText);
    else if (family !== undefined && ipFamilyOf(ip) !== family) {
      const why = `expected an ${family} value as indicated by \`ipFamilies[${index}]\``;
      yield invalidField(`spec.clusterIPs[${index}]`, text, why);
    }
  }
}

/** Addresses and node ports that another object holds. */
function* validateClaims(spec: JsonObject, before: JsonObject | undefined, { allocations }: ResourceContext): Errors {
  const oldIps = listAt(before, 'clusterIPs');
  const ips = listAt(spec, 'clusterIPs');
  for (const text of ips) {
    const ip = tryParseIp(String(text));
    if (ip === undefined || oldIps.includes(text)) continue;
    const attempt = `failed to allocate IP ${ip}`;
    if (!allocations.isInRange(ip)) {
      const why = `${attempt}: the provided network does not match the current range`;
      yield invalidField('spec.clusterIPs', ips, why);
    } else if (allocations.isTaken(`ip/${ip}`)) {
      yield invalidField('spec.clusterIPs', ips, `${attempt}: provided IP is already allocated`);
    }
  }
  const oldPorts = new Set(listAt(before, 'ports').map(portClaim));
  for (const [index, port] of listAt(spec, 'ports').entries()) {
    const nodePort = numberAt(port, 'nodePort');
    if (nodePort === undefined || oldPorts.has(portClaim(port))) continue;
    const field = `spec.ports[${index}].nodePort`;
    if (nodePort < nodePortRange.first || nodePort > nodePortRange.last) {
      const range = `${nodePortRange.first}-${nodePortRange.last}`;
      const why = `provided port is not in the valid range. The range of valid ports is ${range}`;
      yield invalidField(field, nodePort, why);
    } else if (allocations.isTaken(portClaim(port)) || allocations.isTaken(`port/health/${nodePort}`)) {
      yield invalidField(field, nodePort, 'provided port is already allocated');
    }
  }
}

function portClaim(port: Json): string {
  return `port/${stringAt(port, 'protocol')}/${String(valueAt(port, 'nodePort'))}`;
}
