import type {
  DiscoveryV1EndpointPort,
  V1Endpoint,
  V1EndpointSlice,
  V1LoadBalancerIngress,
  V1Node,
  V1ObjectMeta,
  V1Service,
  V1ServiceCIDR,
  V1ServicePort,
  V1ServiceSpec,
} from '@kubernetes/client-node';
import { requireFunction } from '../base/argument.ts';
import { type Millis, millis, seconds } from '../base/time.ts';
import { type Interner, newInterner } from '../base/values.ts';
import { type IpAddress, type IpFamily, ipFamilyOf, tryParseIp, withoutLeadingZeros } from '../model/ip/address.ts';
import { type Cidr, tryParseCidr } from '../model/ip/cidr.ts';
import { type Port, tryParsePort, tryParseProtocol } from '../model/ip/port.ts';
import type {
  EndpointRecord,
  SlicePortRecord,
  LoadBalancerIngressRecord,
  ServicePortRecord,
  ServiceRecord,
} from '../model/records/records.ts';
import { nodeName, serviceKey, sliceKey } from '../model/records/keys.ts';
import type { Records, ResourceKind } from '../model/state/cluster-event.ts';

/** Reason why an object does not become a record. */
export type IgnoredReason =
  /** `metadata.name` is missing. */
  | 'unnamed'
  /** An EndpointSlice without the label `kubernetes.io/service-name`. */
  | 'noServiceName'
  /** An EndpointSlice with the label `service.kubernetes.io/headless`. */
  | 'headless'
  /** An EndpointSlice whose `addressType` is neither IPv4 nor IPv6 (FQDN). */
  | 'addressType'
  /** A field has a type the API does not allow. */
  | 'malformed';

/** Result of projecting one API object. `name` is the record's key, and the name in a `delete` of it. */
export type Projected<T> =
  | { readonly status: 'record'; readonly name: string; readonly record: T }
  | { readonly status: 'ignored'; readonly name: string; readonly reason: IgnoredReason };

/** A part of an object that a proxy cannot use. The rest of the object still counts. */
export interface SkippedPart {
  readonly resource: ResourceKind;
  readonly name: string;
  /** Field path as in the API, for example `spec.externalIPs[2]`. */
  readonly path: string;
  readonly value: unknown;
}

/** State that the projections of one source share. */
export interface ProjectionContext {
  readonly interner: Interner;
  /** Called for each omitted part, at every appearance of the object. Must not throw. */
  readonly onSkipped: (part: SkippedPart) => void;
}

/** The raw API type of each watched resource. */
export interface RawObjects {
  readonly Service: V1Service;
  readonly EndpointSlice: V1EndpointSlice;
  readonly Node: V1Node;
  readonly ServiceCIDR: V1ServiceCIDR;
}

/** Returns a context with its own interner. Without `onSkipped`, parts are omitted silently. Throws `UsageError` for one that is no function. */
export function newProjectionContext(onSkipped: ProjectionContext['onSkipped'] = () => undefined): ProjectionContext {
  requireFunction('newProjectionContext: onSkipped', onSkipped);
  return { interner: newInterner(), onSkipped };
}

/** Projection of one kind of object; without a context it uses one of its own. */
export type Projection<K extends ResourceKind> = (
  raw: RawObjects[K],
  context?: ProjectionContext,
) => Projected<Records[K]>;

const noAddresses: readonly IpAddress[] = [];
const noStrings: readonly string[] = [];
const noAffinity: ServiceRecord['sessionAffinity'] = { kind: 'none' };
const defaultAffinityTimeout = 10_800;

/**
 * Returns the record of a Service. Every Service becomes one; policy decides whether it is proxied. A `healthCheckNodePort`
 * is kept only where it has a meaning: LoadBalancer with `externalTrafficPolicy: Local`.
 */
export const recordFromService: Projection<'Service'> = projection(
  'Service',
  ({ raw, key, metadata, skip, interner }) => {
    const spec: Partial<V1ServiceSpec> = raw.spec ?? {};
    const isHeadless = spec.clusterIP === 'None' || spec.clusterIPs?.[0] === 'None';
    const clusterIps = isHeadless ? noAddresses : clusterIpsOf(spec, skip);
    const type = serviceType(spec.type);
    const externalTrafficPolicy = spec.externalTrafficPolicy === 'Local' ? 'Local' : 'Cluster';
    const hasHealthCheck = type === 'LoadBalancer' && externalTrafficPolicy === 'Local';
    return {
      key,
      type,
      clusterIps,
      isHeadless,
      ipFamilies: familiesOf(spec, clusterIps, interner),
      ports: portsOf(spec.ports, 'spec.ports', { skip, interner }, servicePort),
      externalIps: addresses(spec.externalIPs, 'spec.externalIPs', skip),
      loadBalancerIngress: ingressOf(raw.status?.loadBalancer?.ingress, skip),
      loadBalancerSourceRanges: sourceRanges(spec.loadBalancerSourceRanges, 'spec.loadBalancerSourceRanges', skip),
      externalTrafficPolicy,
      internalTrafficPolicy: spec.internalTrafficPolicy === 'Local' ? 'Local' : 'Cluster',
      healthCheckNodePort: hasHealthCheck ? tryParsePort(spec.healthCheckNodePort) : undefined,
      sessionAffinity: sessionAffinity(spec),
      serviceProxyName: metadata.labels?.['service.kubernetes.io/service-proxy-name'] ?? undefined,
    };
  },
);

/**
 * Returns the record of an EndpointSlice. Conditions are defaulted as the API says (KEP-1672), null lists are
 * empty, only the first address of an endpoint is kept.
 */
export const recordFromEndpointSlice: Projection<'EndpointSlice'> = projection(
  'EndpointSlice',
  ({ raw, key, metadata, skip, interner }) => {
    const labels = metadata.labels ?? {};
    const service = labels['kubernetes.io/service-name'] ?? '';
    if (service === '') return 'noServiceName';
    if (labels['service.kubernetes.io/headless'] !== undefined) return 'headless';
    const ipFamily = raw.addressType;
    if (ipFamily !== 'IPv4' && ipFamily !== 'IPv6') return 'addressType';
    return {
      key,
      service: serviceKey(metadata.namespace ?? '', service),
      ipFamily,
      ports: portsOf(raw.ports, 'ports', { skip, interner }, slicePort),
      endpoints: collect(raw.endpoints, 'endpoints', skip, (endpoint) => endpointOf(endpoint, ipFamily, interner)),
      lastChangeTriggerTime: instant(metadata.annotations?.['endpoints.kubernetes.io/last-change-trigger-time']),
    };
  },
);

/** Returns the record of a Node. */
export const recordFromNode: Projection<'Node'> = projection('Node', ({ raw, key, metadata, skip, interner }) => {
  const all = raw.status?.addresses ?? [];
  const ofType = (type: string): string[] => all.filter((one) => one.type === type).map((one) => one.address);
  const isLeaving = raw.spec?.taints?.some((taint) => taint.key === 'ToBeDeletedByClusterAutoscaler') ?? false;
  return {
    name: key,
    zone: interner.intern(metadata.labels?.['topology.kubernetes.io/zone'] ?? ''),
    addresses: addresses([...ofType('InternalIP'), ...ofType('ExternalIP')], 'status.addresses', skip),
    podCidrs: cidrs(raw.spec?.podCIDRs ?? listOf(raw.spec?.podCIDR), 'spec.podCIDRs', skip),
    isEligible: !isLeaving && (metadata.deletionTimestamp ?? undefined) === undefined,
  };
});

/** Returns the record of a ServiceCIDR. */
export const recordFromServiceCidr: Projection<'ServiceCIDR'> = projection('ServiceCIDR', ({ raw, key, skip }) => ({
  name: key,
  cidrs: cidrs(raw.spec?.cidrs, 'spec.cidrs', skip),
}));

/** Projection of each resource. It relies on the types of the API server's JSON, not on its values. */
export const projections: { readonly [K in ResourceKind]: Projection<K> } = {
  Service: recordFromService,
  EndpointSlice: recordFromEndpointSlice,
  Node: recordFromNode,
  ServiceCIDR: recordFromServiceCidr,
};

type Skip = (path: string, value: unknown) => unknown;

/** Key of each resource's objects in events and records: one string for both. */
const keys = {
  Service: serviceKey,
  EndpointSlice: sliceKey,
  Node: (_: string, name: string) => nodeName(name),
  ServiceCIDR: (_: string, name: string) => name,
};

interface Subject<K extends ResourceKind> {
  readonly raw: RawObjects[K];
  readonly key: ReturnType<(typeof keys)[K]>;
  readonly metadata: V1ObjectMeta;
  readonly interner: Interner;
  readonly skip: Skip;
}

function projection<K extends ResourceKind>(
  resource: K,
  read: (subject: Subject<K>) => Records[K] | IgnoredReason,
): Projection<K> {
  return (raw, { interner, onSkipped } = newProjectionContext()) => {
    const metadata = raw.metadata ?? {};
    const bare = metadata.name ?? '';
    if (bare === '') return { status: 'ignored', name: '', reason: 'unnamed' };
    const key = keys[resource](metadata.namespace ?? '', bare) as Subject<K>['key']; // the entry of this very resource
    const skip: Skip = (path, value) => onSkipped({ resource, name: key, path, value });
    let record: Records[K] | IgnoredReason;
    try {
      record = read({ raw, key, metadata, interner, skip });
    } catch (error) {
      // A string where the API has a list: one such object must not stop the others (A17).
      if (!(error instanceof TypeError)) throw error;
      record = 'malformed';
    }
    return typeof record === 'string'
      ? { status: 'ignored', name: key, reason: record }
      : { status: 'record', name: key, record };
  };
}

function clusterIpsOf(spec: Partial<V1ServiceSpec>, skip: Skip): readonly IpAddress[] {
  const written = spec.clusterIPs?.length ? spec.clusterIPs : listOf(spec.clusterIP);
  const all = addresses(written, 'spec.clusterIPs', skip);
  const isFirstOfFamily = (ip: IpAddress, index: number): boolean =>
    all.findIndex((other) => ipFamilyOf(other) === ipFamilyOf(ip)) === index;
  return all.every(isFirstOfFamily) ? all : all.filter(isFirstOfFamily);
}

function familiesOf(
  spec: Partial<V1ServiceSpec>,
  clusterIps: readonly IpAddress[],
  interner: Interner,
): readonly IpFamily[] {
  const written = spec.ipFamilies?.filter((family) => family === 'IPv4' || family === 'IPv6') ?? [];
  const families = written.length > 0 ? written : clusterIps.map(ipFamilyOf);
  return interner.internList<IpFamily>(families, `ipFamilies ${families.join()}`);
}

function serviceType(text: string | undefined): ServiceRecord['type'] {
  return text === 'NodePort' || text === 'LoadBalancer' || text === 'ExternalName' ? text : 'ClusterIP';
}

function portsOf<Raw, Port extends object>(
  raw: readonly Raw[] | undefined,
  path: string,
  { skip, interner }: { readonly skip: Skip; readonly interner: Interner },
  read: (port: Raw, interner: Interner) => Port | undefined,
): readonly Port[] {
  const ports = collect(raw, path, skip, (port) => read(port, interner));
  return ports.length === 0 ? ports : interner.internList(ports, `${path} ${JSON.stringify(ports)}`);
}

function servicePort(raw: V1ServicePort, interner: Interner): ServicePortRecord | undefined {
  const port = tryParsePort(raw.port);
  const protocol = tryParseProtocol(raw.protocol ?? 'TCP');
  if (port === undefined || protocol === undefined) return undefined;
  return { name: interner.intern(raw.name ?? ''), protocol, port, nodePort: tryParsePort(raw.nodePort) };
}

function slicePort(raw: DiscoveryV1EndpointPort, interner: Interner): SlicePortRecord | undefined {
  const port: Port | undefined = tryParsePort(raw.port);
  const protocol = tryParseProtocol(raw.protocol ?? 'TCP');
  const name = raw.name ?? undefined;
  if (port === undefined || protocol === undefined || name === undefined) return undefined;
  return { name: interner.intern(name), protocol, port };
}

function endpointOf(raw: V1Endpoint, ipFamily: IpFamily, interner: Interner): EndpointRecord | undefined {
  const address = readIp(raw.addresses[0] ?? '');
  if (address === undefined || ipFamilyOf(address) !== ipFamily) return undefined;
  const node = raw.nodeName ?? '';
  return {
    address,
    ready: raw.conditions?.ready ?? true,
    serving: raw.conditions?.serving ?? true,
    terminating: raw.conditions?.terminating ?? false,
    nodeName: node === '' ? undefined : nodeName(interner.intern(node)),
    zoneHints: hintNames(raw.hints?.forZones, interner),
    nodeHints: hintNames(raw.hints?.forNodes, interner),
  };
}

function hintNames(hints: readonly { readonly name: string }[] | undefined, interner: Interner): readonly string[] {
  return hints?.length ? hints.map((hint) => interner.intern(hint.name)) : noStrings;
}

function ingressOf(
  raw: readonly V1LoadBalancerIngress[] | undefined,
  skip: Skip,
): ServiceRecord['loadBalancerIngress'] {
  const withIp = raw?.filter((entry) => (entry.ip ?? '') !== '');
  return collect(
    withIp,
    'status.loadBalancer.ingress',
    skip,
    ({ ip: text = '', ipMode }): LoadBalancerIngressRecord | undefined => {
      const ip = readIp(text);
      return ip === undefined ? undefined : { ip, ipMode: ipMode ?? 'VIP' };
    },
  );
}

function sessionAffinity(spec: Partial<V1ServiceSpec>): ServiceRecord['sessionAffinity'] {
  if (spec.sessionAffinity !== 'ClientIP') return noAffinity;
  const written: unknown = spec.sessionAffinityConfig?.clientIP?.timeoutSeconds;
  return { kind: 'clientIP', timeout: seconds(typeof written === 'number' ? written : defaultAffinityTimeout) };
}

/** Parses RFC 3339 text; undefined when absent or invalid. Only a metric uses it. */
function instant(text: string | undefined): Millis | undefined {
  const value = Date.parse(text ?? '');
  return Number.isNaN(value) ? undefined : millis(value);
}

/** Parses addresses. Omits empty texts silently (kube-proxy fact 26). */
function addresses(texts: readonly string[] | undefined, path: string, skip: Skip): readonly IpAddress[] {
  return collect(texts, path, (at, value) => value !== '' && skip(at, value), readIp);
}

function cidrs(texts: readonly string[] | undefined, path: string, skip: Skip): readonly Cidr[] {
  return collect(texts, path, skip, readCidr);
}

/** Parses source ranges. If none is valid, no source is allowed; kube-proxy would allow every source. */
function sourceRanges(texts: readonly string[] | undefined, path: string, skip: Skip): readonly Cidr[] {
  const ranges = cidrs(texts, path, skip);
  return ranges.length === 0 && texts?.some((text) => text.trim() !== '') === true ? allowsNobody : ranges;
}

function listOf(text: string | undefined): readonly string[] {
  return (text ?? '') === '' ? noStrings : [text ?? ''];
}

const nothing: readonly never[] = [];

/**
 * Returns the usable parts of a list and reports the others by path. Null, as in API objects, is empty. `map` allocates
 * lists of the exact length.
 */
function collect<Raw, T>(
  raw: readonly Raw[] | undefined,
  path: string,
  skip: Skip,
  read: (one: Raw) => T | undefined,
): readonly T[] {
  if (!raw?.length) return nothing;
  const found = raw.map((one, index) => {
    const value = read(one);
    if (value === undefined) skip(`${path}[${index}]`, one);
    return value;
  });
  return found.every((one) => one !== undefined) ? found : found.filter((one) => one !== undefined);
}

// API servers before strict validation (KEP-4858, on since Kubernetes 1.36) accepted other spellings of addresses. Such
// objects still exist, and kube-proxy reads them: leading zeros are ignored, an IPv4-mapped IPv6 address is the IPv4 address.

const mappedIpv4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** Parses an address of a stored object; undefined for an invalid one. */
export function readIp(text: string): IpAddress | undefined {
  const canonical = tryParseIp(text);
  if (canonical !== undefined) return canonical;
  const ipv4 = mappedIpv4.exec(text)?.[1] ?? text;
  return ipv4.includes(':') ? undefined : tryParseIp(withoutLeadingZeros(ipv4));
}

/** Parses a CIDR of a stored object; undefined for an invalid one. As in kube-proxy, an IPv4-mapped CIDR belongs to no family. */
export function readCidr(text: string): Cidr | undefined {
  return tryParseCidr(withoutLeadingZeros(text.trim()).replace(/\/0+(?=\d)/, '/'));
}

/**
 * Ranges that allow no sender: a packet never comes from the unspecified address (RFC 1122, 3.2.1.3; RFC 4291, 2.5.2).
 * They replace `loadBalancerSourceRanges` without a valid range, since an empty list allows every source.
 */
const allowsNobody: readonly Cidr[] = ['0.0.0.0/32' as Cidr, '::/128' as Cidr];
