import { isEqual } from '../equal.ts';
import { type Cidr, cidrFamilyOf, cidrsOverlap, everythingOf, loopbackOf } from '../ip/cidr.ts';
import type { ServiceKey, ServicePortKey } from '../records/keys.ts';
import type { SortedMap } from '../sorted-map.ts';
import { apiServerPlaces } from './api-server-places.ts';
import { type BuildContext, buildContext, buildService, type BuiltService } from './build-service.ts';
import type { ClusterStateView, TableOptions } from './build-table-types.ts';
import { haveEqualSettings, sorted, sortedHealthChecks } from './diff-tables.ts';
import { isSameForwarding } from './is-same-forwarding.ts';
import type { ForwardingTable, HealthCheck, NodePortsOnLoopback, ServiceForwarding } from './forwarding-table.ts';
import { FrontendClaims } from './frontend-claims.ts';

/**
 * Claims of the newest table of each line, by its `services`. A build takes them over for its result;
 * whoever then builds on the older table again pays for new ones. Never visible in a result.
 */
const claimsOf = new WeakMap<ForwardingTable['services'], FrontendClaims>();

const noPrepared: TableBuild['prepared'] = new Map();

/**
 * The forwarding table of one family for the present state.
 *
 * Rebuilds `dirty` services and takes all others from `previous`; the result is equal to a full build
 * of the same state, provided everything that changed since `previous` is in `dirty`. Services that
 * did not change are the same objects, and if nothing changed the result is `previous` itself.
 * `previous` stays valid: tables never change, and successive ones share their parts. Use `'all'`
 * when options or our Node changed; without `previous` everything is built.
 */
export function buildTable(
  state: ClusterStateView,
  dirty: 'all' | ReadonlySet<ServiceKey>,
  previous: ForwardingTable | undefined,
  options: TableOptions,
): ForwardingTable {
  return buildTableFrom({ state, dirty, previous, options, prepared: noPrepared });
}

/** Inputs of a build; see `buildTable`. */
export interface TableBuild {
  readonly state: ClusterStateView;
  readonly dirty: 'all' | ReadonlySet<ServiceKey>;
  readonly previous: ForwardingTable | undefined;
  readonly options: TableOptions;
  /** Services that are not built if they are dirty: taken as `prepareService` built them, as of the moment at which that began. */
  readonly prepared: ReadonlyMap<ServiceKey, BuiltService>;
}

/** Like `buildTable`, with Services that are built already. */
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

/** Builds one Service; `context` is that of the whole build. */
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

/** The claims of `before`, no longer available to others: the caller is about to change them. */
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

/** The ports of one Service: their keys are all that begin with the Service's key and a colon. */
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

/** `before` with `next` in place of `old`, keeping objects that are equal. */
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

/** A list that names no CIDR of this family leaves all addresses of the family open; no list, none. */
function nodePortCidrs(options: TableOptions): readonly Cidr[] {
  const own = [...new Set(options.nodePortCidrs)].filter((cidr) => cidrFamilyOf(cidr) === options.ipFamily);
  return own.length > 0 || options.nodePortCidrs.length === 0 ? own : [everythingOf(options.ipFamily)];
}

/** Rules of the kernel can forward from loopback addresses in IPv4 alone. */
function nodePortsOnLoopback(options: TableOptions, cidrs: readonly Cidr[]): NodePortsOnLoopback {
  const { nodePortsOnLoopback: asked = 'none', ipFamily } = options;
  const loopback = loopbackOf(asked === 'kernel' ? 'IPv4' : ipFamily);
  return cidrs.some((cidr) => cidrsOverlap(cidr, loopback)) ? asked : 'none';
}
