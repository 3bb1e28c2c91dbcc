import { wrongArgument } from '../../base/argument.ts';
import { isEqual } from '../../base/values.ts';
import { SortedMap } from '../../base/sorted-map.ts';
import { checkTableInput } from './check-input.ts';
import { type BuildContext, type BuiltService, buildContext, buildService } from './build-service.ts';
import type {
  ClusterStateView,
  TableOptions,
  Endpoint,
  ForwardingTable,
  HealthCheck,
  NodePortsOnLoopback,
  ServiceForwarding,
  TableDelta,
} from './forwarding-table.ts';
import { FrontendClaims, apiServerPlaces } from './frontend-claims.ts';
import { type Cidr, cidrFamilyOf, cidrsOverlap, everythingOf, loopbackOf } from '../ip/cidr.ts';
import type { ServiceKey, ServicePortKey } from '../records/keys.ts';

/**
 * Claims of the newest table of each line, by its `services`. A build reuses them for its result; a later build on an older
 * table computes them again. Never visible in a result.
 */
const claimsOf = new WeakMap<ForwardingTable['services'], FrontendClaims>();

const noPrepared: TableBuild['prepared'] = new Map();

/**
 * Builds the forwarding table of one family for the present state.
 *
 * Rebuilds `dirty` services and takes all others from `previous`; the result is equal to a full build
 * of the same state, provided everything that changed since `previous` is in `dirty`. Services that
 * did not change are the same objects, and if nothing changed the result is `previous` itself.
 * `previous` stays valid: tables never change, and successive ones share their parts. Use `'all'`
 * when options or the Node of this agent changed; without `previous` everything is built.
 *
 * Throws `UsageError` for arguments outside their types, such as a `previous` of the other family or a missing option.
 */
export function buildTable(
  state: ClusterStateView,
  dirty: 'all' | ReadonlySet<ServiceKey>,
  previous: ForwardingTable | undefined,
  options: TableOptions,
): ForwardingTable {
  checkTableInput({ state, dirty, previous, options });
  return buildTableFrom({ state, dirty, previous, options, prepared: noPrepared });
}

interface TableBuild {
  readonly state: ClusterStateView;
  readonly dirty: 'all' | ReadonlySet<ServiceKey>;
  readonly previous: ForwardingTable | undefined;
  readonly options: TableOptions;
  /** Results of `prepareService`, which replace builds of dirty Services; as of the start of their build. */
  readonly prepared: ReadonlyMap<ServiceKey, BuiltService>;
}

/** Like `buildTable`, with prepared Services and without checks of its arguments. */
export function buildTableFrom({ state, dirty, previous, options, prepared }: TableBuild): ForwardingTable {
  const context = buildContext(state, options);
  const work: Build = { context, build: (key) => prepared.get(key) ?? buildService(key, context) };
  const before = sorted(previous?.services);
  const isFull = dirty === 'all' || previous === undefined;
  const services = isFull ? rebuildAll(before, work) : rebuildSome(before, dirty, work);
  const cidrs = nodePortCidrs(options);
  const next: ForwardingTable = {
    ipFamily: options.ipFamily,
    generation: (previous?.generation ?? 0) + 1,
    services: services.table,
    healthChecks: nextHealthChecks(previous, services.healthChecks, isFull ? 'all' : dirty),
    nodePortCidrs: cidrs,
    nodePortsOnLoopback: nodePortsOnLoopback(options, cidrs),
    serviceCidrs: state.serviceCidrs.filter((cidr) => cidrFamilyOf(cidr) === options.ipFamily),
    podDetector: context.options.podDetector,
  };
  const isUnchanged =
    previous !== undefined &&
    next.services === previous.services &&
    next.healthChecks === previous.healthChecks &&
    haveEqualSettings(next, previous);
  return isUnchanged ? previous : next;
}

interface RebuiltServices {
  readonly table: SortedMap<ServicePortKey, ServiceForwarding>;
  readonly healthChecks: readonly HealthCheck[];
}

interface Build {
  readonly context: BuildContext;
  readonly build: (key: ServiceKey) => BuiltService;
}

function rebuildAll(before: SortedMap<ServicePortKey, ServiceForwarding>, { context, build }: Build): RebuiltServices {
  const claims = new FrontendClaims(apiServerPlaces(context.state, context.options));
  const built: ServiceForwarding[] = [];
  const healthChecks: HealthCheck[] = [];
  for (const key of context.state.services.keys()) {
    const service = build(key);
    if (service.healthCheck !== undefined) healthChecks.push(service.healthCheck);
    for (const port of service.ports) {
      claims.add(port);
      built.push(port);
    }
  }
  const table = replaced(
    before,
    before.values(),
    built.map((port) => claims.settle(port)),
  );
  claimsOf.set(table, claims);
  return { table, healthChecks };
}

function rebuildSome(
  before: SortedMap<ServicePortKey, ServiceForwarding>,
  dirty: ReadonlySet<ServiceKey>,
  { context, build }: Build,
): RebuiltServices {
  const claims = takeClaims(before, context);
  const old = new Map<ServicePortKey, ServiceForwarding>();
  const built = new Map<ServicePortKey, ServiceForwarding>();
  const services = [...dirty].map((key) => ({ key, ...build(key) }));
  const affected = new Set<ServiceKey>();
  const note = (keys: readonly ServiceKey[]): void => keys.forEach((key) => affected.add(key));
  for (const { key, ports } of services) {
    for (const port of ports) built.set(port.key, port);
    for (const port of portsOf(before, key)) {
      if (built.get(port.key) === port) {
        built.delete(port.key); // its claims stay
        continue;
      }
      old.set(port.key, port);
      note(claims.remove(port));
    }
  }
  for (const port of built.values()) note(claims.add(port));
  for (const key of affected) {
    for (const port of portsOf(before, key)) {
      if (old.has(port.key) || built.has(port.key)) continue;
      old.set(port.key, port);
      built.set(port.key, port);
    }
  }
  const table = replaced(
    before,
    old.values(),
    [...built.values()].map((port) => claims.settle(port)),
  );
  claimsOf.set(table, claims);
  return { table, healthChecks: services.flatMap(({ healthCheck }) => healthCheck ?? []) };
}

/** Removes and returns the claims of `before`, which the caller changes. */
function takeClaims(
  before: SortedMap<ServicePortKey, ServiceForwarding>,
  { state, options }: BuildContext,
): FrontendClaims {
  const apiServers = apiServerPlaces(state, options);
  const kept = claimsOf.get(before);
  // Tables without Services share one map, also those of different families.
  if (kept?.isOf(apiServers) === true) {
    claimsOf.delete(before);
    return kept;
  }
  const claims = new FrontendClaims(apiServers);
  for (const port of before.values()) claims.add(port);
  return claims;
}

/** Returns the ports of one Service: all keys that begin with the Service's key and a colon. */
function* portsOf(
  table: SortedMap<ServicePortKey, ServiceForwarding>,
  service: ServiceKey,
): Generator<ServiceForwarding, undefined, unknown> {
  for (const port of table.valuesFrom(`${service}:`)) {
    if (port.service !== service) return undefined;
    yield port;
  }
  return undefined;
}

/** Returns `before` with `next` in place of `old`, keeping objects that are equal. */
function replaced(
  before: SortedMap<ServicePortKey, ServiceForwarding>,
  old: Iterable<ServiceForwarding>,
  next: readonly ServiceForwarding[],
): SortedMap<ServicePortKey, ServiceForwarding> {
  const changed = next.filter((port) => {
    const previous = before.get(port.key);
    return previous === undefined || !isSameForwarding(previous, port);
  });
  const stays = new Set(next.map((port) => port.key));
  const gone: ServicePortKey[] = [];
  for (const port of old) if (!stays.has(port.key)) gone.push(port.key);
  return before.with(changed, gone);
}

function nextHealthChecks(
  previous: ForwardingTable | undefined,
  rebuilt: readonly HealthCheck[],
  dirty: 'all' | ReadonlySet<ServiceKey>,
): SortedMap<ServiceKey, HealthCheck> {
  const before = sortedHealthChecks(previous?.healthChecks);
  const stays = new Set(rebuilt.map((check) => check.service));
  const gone = [...(dirty === 'all' ? before.keys() : dirty)].filter((key) => !stays.has(key));
  return before.with(
    rebuilt.filter((check) => !isEqual(before.get(check.service), check)),
    gone,
  );
}

/** Returns the CIDRs of this family; all addresses if a list names none of this family, none without a list. */
function nodePortCidrs(options: TableOptions): readonly Cidr[] {
  const own = [...new Set(options.nodePortCidrs)].filter((cidr) => cidrFamilyOf(cidr) === options.ipFamily);
  return own.length > 0 || options.nodePortCidrs.length === 0 ? own : [everythingOf(options.ipFamily)];
}

/** Returns the possible mode: kernel rules can forward from loopback addresses only in IPv4. */
function nodePortsOnLoopback(options: TableOptions, cidrs: readonly Cidr[]): NodePortsOnLoopback {
  const { nodePortsOnLoopback: asked = 'none', ipFamily } = options;
  const loopback = loopbackOf(asked === 'kernel' ? 'IPv4' : ipFamily);
  return cidrs.some((cidr) => cidrsOverlap(cidr, loopback)) ? asked : 'none';
}

const noServices: SortedMap<ServicePortKey, ServiceForwarding> = SortedMap.empty((service) => service.key);
const noHealthChecks: SortedMap<ServiceKey, HealthCheck> = SortedMap.empty((check) => check.service);

/**
 * Returns the changes from `previous` (undefined: nothing applied yet) to `next`. Compares
 * services by identity. Tables made by `buildTable` share what did not change and are compared in
 * time proportional to the change, whether one build lies between them or many. Throws `UsageError` for what is no table.
 */
export function diffTables(previous: ForwardingTable | undefined, next: ForwardingTable): TableDelta {
  for (const table of [previous ?? next, next]) {
    if (typeof table?.services?.get !== 'function') throw wrongArgument('diffTables', 'given forwarding tables', table);
  }
  const { upserted, removed } = sorted(next.services).changesSince(sorted(previous?.services));
  return {
    upserted,
    removed,
    settingsChanged:
      previous === undefined || !haveEqualSettings(previous, next) || !haveEqualHealthPorts(previous, next),
  };
}

/** Whether a delta is empty. */
export function isEmptyDelta(delta: TableDelta): boolean {
  return !delta.settingsChanged && delta.upserted.length === 0 && delta.removed.length === 0;
}

/** Whether everything outside `services` and `healthChecks` is equal. */
export function haveEqualSettings(a: ForwardingTable, b: ForwardingTable): boolean {
  return (
    a.ipFamily === b.ipFamily &&
    isEqual(a.nodePortCidrs, b.nodePortCidrs) &&
    a.nodePortsOnLoopback === b.nodePortsOnLoopback &&
    isEqual(a.serviceCidrs, b.serviceCidrs) &&
    isEqual(a.podDetector, b.podDetector)
  );
}

/** Whether the health check servers have the same ports: some backends open these to load balancers. */
function haveEqualHealthPorts(previous: ForwardingTable, next: ForwardingTable): boolean {
  if (previous.healthChecks === next.healthChecks) return true;
  const { upserted, removed } = sortedHealthChecks(next.healthChecks).changesSince(
    sortedHealthChecks(previous.healthChecks),
  );
  return (
    removed.length === 0 && upserted.every(({ service, port }) => previous.healthChecks.get(service)?.port === port)
  );
}

/** Returns the services of a table as a `SortedMap`; copies those of a table that `buildTable` did not build. Throws `UsageError` for what is no Map. */
export function sorted(
  services: ForwardingTable['services'] | undefined,
): SortedMap<ServicePortKey, ServiceForwarding> {
  if (services === undefined) return noServices;
  if (services instanceof SortedMap) return services;
  if (typeof services?.get !== 'function') throw wrongArgument('sorted: services', 'a Map', services);
  return noServices.with(services.values(), []);
}

/** The same for health checks. */
function sortedHealthChecks(checks: ForwardingTable['healthChecks'] | undefined): SortedMap<ServiceKey, HealthCheck> {
  if (checks === undefined) return noHealthChecks;
  return checks instanceof SortedMap ? checks : noHealthChecks.with(checks.values(), []);
}

/** Whether two versions of one Service port are equal, so that the older object is kept (A11). */
export function isSameForwarding(a: ServiceForwarding, b: ServiceForwarding): boolean {
  if (a === b) return true;
  return (
    a.key === b.key &&
    a.service === b.service &&
    a.protocol === b.protocol &&
    a.topology === b.topology &&
    areEndpointsEqual(a.knownEndpoints, b.knownEndpoints) &&
    isSameSet(a, b, 'Cluster') &&
    isSameSet(a, b, 'Local') &&
    isEqual(a.frontends, b.frontends) &&
    isEqual(a.lostFrontends, b.lostFrontends) &&
    isEqual(a.leftToRoute, b.leftToRoute) &&
    isEqual(a.policies, b.policies) &&
    isEqual(a.sessionAffinity, b.sessionAffinity)
  );
}

/** A set that is all known endpoints needs no second comparison: most are. */
function isSameSet(a: ServiceForwarding, b: ServiceForwarding, policy: 'Cluster' | 'Local'): boolean {
  const areBothAll = a.endpoints[policy] === a.knownEndpoints && b.endpoints[policy] === b.knownEndpoints;
  return areBothAll || areEndpointsEqual(a.endpoints[policy], b.endpoints[policy]);
}

function areEndpointsEqual(a: readonly Endpoint[], b: readonly Endpoint[]): boolean {
  return a === b || (a.length === b.length && a.every((endpoint, index) => isSameEndpoint(endpoint, b[index])));
}

function isSameEndpoint(a: Endpoint, b: Endpoint | undefined): boolean {
  return (
    b !== undefined &&
    a.address === b.address &&
    a.port === b.port &&
    a.isLocal === b.isLocal &&
    a.nodeName === b.nodeName &&
    a.ready === b.ready &&
    a.serving === b.serving &&
    a.terminating === b.terminating &&
    isEqual(a.zoneHints, b.zoneHints) &&
    isEqual(a.nodeHints, b.nodeHints)
  );
}
