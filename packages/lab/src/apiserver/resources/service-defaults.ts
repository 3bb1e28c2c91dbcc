import { type IpAddress, type IpFamily, ipFamilyOf, tryParseIp } from '@switchyard/core';
import type { Allocations } from '../allocations.ts';
import {
  isJsonObject,
  type Json,
  type JsonObject,
  listAt,
  type MutableJsonObject,
  objectAt,
  stringAt,
  valueAt,
  withFields,
} from '../json.ts';
import type { ResourceContext } from '../resource.ts';
import * as t from '../schema.ts';
import { internalError } from '../status-error.ts';

/** Schema of `spec`. Its order is that of the fields in a stored Service. */
export const serviceSpec: t.ObjectSchema = t.object('ServiceSpec', {
  ports: t.listByKey(
    'port',
    t.object('ServicePort', {
      name: t.text,
      protocol: t.text,
      appProtocol: t.textPointer,
      port: t.intPointer,
      targetPort: t.intOrString,
      nodePort: t.int,
    }),
  ),
  selector: t.textMap,
  clusterIP: t.text,
  clusterIPs: t.textList,
  type: t.text,
  externalIPs: t.textList,
  sessionAffinity: t.text,
  loadBalancerIP: t.text,
  loadBalancerSourceRanges: t.textList,
  externalName: t.text,
  externalTrafficPolicy: t.text,
  healthCheckNodePort: t.int,
  publishNotReadyAddresses: t.flag,
  sessionAffinityConfig: t.object('SessionAffinityConfig', {
    clientIP: t.object('ClientIPConfig', { timeoutSeconds: t.intPointer }),
  }),
  ipFamilies: t.textList,
  ipFamilyPolicy: t.textPointer,
  allocateLoadBalancerNodePorts: t.flagPointer,
  ...t.fields(t.textPointer, 'loadBalancerClass', 'internalTrafficPolicy', 'trafficDistribution'),
});

/**
 * Returns a Service with all fields that the API server sets: defaults, cluster IPs, node ports, health check port.
 * An update keeps the allocations of `previous` that the type still needs.
 */
export function setServiceDefaults(
  object: JsonObject,
  previous: JsonObject | undefined,
  context: ResourceContext,
): JsonObject {
  const spec: MutableJsonObject = { ...objectAt(object, 'spec') };
  const before = objectAt(previous, 'spec');
  spec['type'] ??= 'ClusterIP';
  spec['sessionAffinity'] ??= 'None';
  if (spec['sessionAffinity'] === 'None') delete spec['sessionAffinityConfig'];
  else if (spec['sessionAffinity'] === 'ClientIP') {
    spec['sessionAffinityConfig'] ??= { clientIP: { timeoutSeconds: 10_800 } };
  }
  if (valueAt(spec, 'ports') !== undefined) spec['ports'] = listAt(spec, 'ports').map(setPortDefaults);
  if (spec['type'] === 'ExternalName') dropClusterFields(spec);
  else {
    spec['internalTrafficPolicy'] ??= 'Cluster';
    setAddresses(spec, before, context.allocations);
  }
  setExternalFields(spec, before, context.allocations);
  return withFields(object, { spec: ordered(spec), status: keptStatus(object, spec) });
}

/** An ingress address without `ipMode` gets `VIP` (KEP-1860). */
export function setServiceStatusDefaults(object: JsonObject): JsonObject {
  const ingress = listAt(object, 'status', 'loadBalancer', 'ingress');
  if (ingress.length === 0) return object;
  const withMode = ingress.map((entry) =>
    isJsonObject(entry) && stringAt(entry, 'ip') !== '' && entry['ipMode'] === undefined
      ? { ...entry, ipMode: 'VIP' }
      : entry,
  );
  const loadBalancer = { ...objectAt(object, 'status', 'loadBalancer'), ingress: withMode };
  return { ...object, status: { ...objectAt(object, 'status'), loadBalancer } };
}

export function serviceClaims(object: JsonObject): readonly string[] {
  const spec = objectAt(object, 'spec');
  const claims = listAt(spec, 'clusterIPs')
    .filter((ip) => ip !== 'None' && ip !== '')
    .map((ip) => `ip/${String(ip)}`);
  for (const port of listAt(spec, 'ports')) {
    const nodePort = valueAt(port, 'nodePort');
    if (typeof nodePort === 'number') claims.push(`port/${stringAt(port, 'protocol')}/${nodePort}`);
  }
  const health = spec['healthCheckNodePort'];
  if (typeof health === 'number') claims.push(`port/health/${health}`);
  return claims;
}

function setPortDefaults(port: Json): Json {
  if (!isJsonObject(port)) return port;
  const { name, protocol, appProtocol, port: number, targetPort, nodePort } = port;
  const target = targetPort === undefined || targetPort === 0 || targetPort === '' ? number : targetPort;
  return withFields({}, { name, protocol: protocol ?? 'TCP', appProtocol, port: number, targetPort: target, nodePort });
}

function dropClusterFields(spec: MutableJsonObject): void {
  for (const field of ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy']) delete spec[field];
}

/** Families, policy and cluster IPs. Validation reports wrong combinations. */
function setAddresses(spec: MutableJsonObject, before: JsonObject, allocations: Allocations): void {
  adoptSingular(spec, before);
  const given = listAt(spec, 'clusterIPs').map(String);
  const isHeadless = given[0] === 'None';
  const wanted = wantedFamilies(spec, given, allocations, isHeadless);
  spec['ipFamilies'] = wanted;
  spec['ipFamilyPolicy'] ??= wanted.length > 1 ? 'RequireDualStack' : 'SingleStack';
  if (isHeadless) {
    spec['clusterIP'] = 'None';
    spec['clusterIPs'] = ['None'];
    return;
  }
  const ips = wanted.flatMap((family, index) => given[index] ?? allocateIp(family, allocations));
  spec['clusterIPs'] = ips;
  if (ips[0] !== undefined) spec['clusterIP'] = ips[0];
}

/** A free address; nothing when the family is not configured, which validation reports. */
function allocateIp(family: IpFamily, allocations: Allocations): readonly IpAddress[] {
  if (!allocations.families.includes(family)) return [];
  const ip = allocations.freeIp(family);
  if (ip === undefined) throw internalError('Internal error occurred: failed to allocate a serviceIP: range is full');
  return [ip];
}

/** A free node port that is not in `used`. */
function allocatePort(used: ReadonlySet<number>, allocations: Allocations): number {
  const port = allocations.freePort(used);
  if (port === undefined) throw internalError('Internal error occurred: failed to allocate a nodePort: range is full');
  return port;
}

/** `clusterIP` is the older spelling of the first of `clusterIPs`; either may be set, or kept from the previous version. */
function adoptSingular(spec: MutableJsonObject, before: JsonObject): void {
  const single = stringAt(spec, 'clusterIP');
  const singleBefore = stringAt(before, 'clusterIP');
  const rest = listAt(spec, 'clusterIPs').slice(1);
  if (single === '' && listAt(spec, 'clusterIPs').length === 0 && singleBefore !== '') {
    spec['clusterIP'] = singleBefore;
    spec['clusterIPs'] = listAt(before, 'clusterIPs');
  } else if (single !== '' && (listAt(spec, 'clusterIPs').length === 0 || single !== singleBefore)) {
    const isOldList = valueAt(spec, 'clusterIPs') === undefined || single !== singleBefore;
    if (isOldList && stringAt(spec, 'clusterIP') !== String(listAt(spec, 'clusterIPs')[0])) {
      spec['clusterIPs'] = [single, ...rest];
    }
  }
}

function wantedFamilies(
  spec: JsonObject,
  given: readonly string[],
  allocations: Allocations,
  isHeadless: boolean,
): readonly IpFamily[] {
  const families = listAt(spec, 'ipFamilies').filter((family): family is IpFamily => typeof family === 'string');
  const fromIps = isHeadless ? [] : given.flatMap((ip) => familyOfText(ip) ?? []);
  const start = families.length > 0 ? families : fromIps.length > 0 ? fromIps : allocations.families.slice(0, 1);
  const policy = stringAt(spec, 'ipFamilyPolicy');
  if (policy === 'SingleStack') return start.slice(0, 1);
  if (policy === '') return start;
  const others = allocations.families.filter((family) => !start.includes(family));
  return [...start, ...others].slice(0, 2);
}

function familyOfText(text: string): IpFamily | undefined {
  const ip: IpAddress | undefined = tryParseIp(text);
  return ip === undefined ? undefined : ipFamilyOf(ip);
}

/** Node ports, external policy and health check port, by type. */
function setExternalFields(spec: MutableJsonObject, before: JsonObject, allocations: Allocations): void {
  const isBalanced = spec['type'] === 'LoadBalancer';
  const hasNodePorts = spec['type'] === 'NodePort' || isBalanced;
  if (isBalanced) spec['allocateLoadBalancerNodePorts'] ??= true;
  else {
    delete spec['allocateLoadBalancerNodePorts'];
    delete spec['loadBalancerClass'];
    delete spec['loadBalancerSourceRanges'];
  }
  const isExternal = hasNodePorts || listAt(spec, 'externalIPs').length > 0;
  if (isExternal && spec['type'] !== 'ExternalName') spec['externalTrafficPolicy'] ??= 'Cluster';
  else delete spec['externalTrafficPolicy'];
  setNodePorts(spec, before, { hasNodePorts, isBalanced, allocations });
  if (isBalanced && spec['externalTrafficPolicy'] === 'Local') {
    spec['healthCheckNodePort'] ??= before['healthCheckNodePort'] ?? allocatePort(portsOf(spec), allocations);
  } else if (spec['healthCheckNodePort'] === before['healthCheckNodePort']) delete spec['healthCheckNodePort'];
}

function setNodePorts(
  spec: MutableJsonObject,
  before: JsonObject,
  how: { readonly hasNodePorts: boolean; readonly isBalanced: boolean; readonly allocations: Allocations },
): void {
  const ports = listAt(spec, 'ports');
  if (ports.length === 0) return;
  const old = listAt(before, 'ports');
  if (!how.hasNodePorts) {
    // Ports allocated for an earlier type are removed; validation refuses new ones.
    const oldPorts = portsOf(before);
    spec['ports'] = ports.map((port) =>
      isJsonObject(port) && oldPorts.has(Number(port['nodePort'])) ? withFields(port, { nodePort: undefined }) : port,
    );
    return;
  }
  const isAllocating = !how.isBalanced || spec['allocateLoadBalancerNodePorts'] !== false;
  const used = new Set(portsOf(spec));
  spec['ports'] = ports.map((port) => {
    if (!isJsonObject(port) || typeof port['nodePort'] === 'number') return port;
    const same = old.find((other) => stringAt(other, 'name') === stringAt(port, 'name'));
    const kept = valueAt(same, 'nodePort');
    const nodePort =
      typeof kept === 'number' && !used.has(kept)
        ? kept
        : isAllocating
          ? allocatePort(used, how.allocations)
          : undefined;
    if (nodePort === undefined) return port;
    used.add(nodePort);
    return { ...port, nodePort };
  });
}

function portsOf(spec: JsonObject): Set<number> {
  const ports = new Set<number>();
  for (const port of listAt(spec, 'ports')) {
    const nodePort = valueAt(port, 'nodePort');
    if (typeof nodePort === 'number') ports.add(nodePort);
  }
  return ports;
}

/** Removes `status.loadBalancer` if the type is no longer LoadBalancer; keeps conditions. */
function keptStatus(object: JsonObject, spec: JsonObject): JsonObject {
  const status = objectAt(object, 'status');
  const loadBalancer = spec['type'] === 'LoadBalancer' ? objectAt(status, 'loadBalancer') : {};
  return { ...status, loadBalancer };
}

function ordered(spec: JsonObject): JsonObject {
  const result: MutableJsonObject = {};
  for (const field in serviceSpec.fields) {
    const value = spec[field];
    if (value !== undefined) result[field] = value;
  }
  return result;
}
