import {
  type Endpoint,
  type ForwardingTable,
  type HealthCheck,
  type IpFamily,
  type ServiceForwarding,
  type ServiceKey,
  type ServicePortKey,
} from '@switchyard/core';
import { type Failure } from '@switchyard/core/engine';
import { type HttpReply, type HttpRequest, jsonAnswer, textAnswer } from '@switchyard/core/health';
import { type DebugState, failureView, familySummary, optional, timeText } from './debug-state.ts';

/** Maximum size of a piece of the answer, except for a larger Service: a few milliseconds of work. */
const perPiece = { services: 50, endpoints: 500 };
const usage = 'usage: /debug/forwarding[?service=NAMESPACE/NAME[:PORT-NAME/PROTOCOL]]\n';

/** One Service, or one port of it, or everything. */
type Filter =
  | { readonly kind: 'everything' }
  | { readonly kind: 'service'; readonly name: string }
  | { readonly kind: 'port'; readonly name: string };

/**
 * `/debug/forwarding`: the applied forwarding of each Service, in every family; in key order, one Service port per line, so
 * that `grep` and `jq` both work.
 */
export function forwardingAnswer(state: DebugState, { query }: HttpRequest): HttpReply {
  const filter = filterOf(query);
  if (filter === undefined) return textAnswer(400, usage);
  const families = state.ipFamilies.map((ipFamily) => selection(state, ipFamily, filter));
  const isThere = ({ services, astray }: Selection): boolean => astray.length > 0 || [...services].length > 0;
  if (filter.kind !== 'everything' && !families.some(isThere)) {
    return jsonAnswer(404, {
      error:
        `nothing of ${filter.name} is in the kernel, and no apply of it failed: it does not exist, is headless or of type ` +
        'ExternalName, is meant for another proxy, has no ports, or was not applied yet',
      families: state.ipFamilies.map((ipFamily) => familySummary(state, ipFamily)),
    });
  }
  const headers = { 'Content-Type': 'application/json', 'X-Content-Type-Options': 'nosniff' };
  return { status: 200, headers, pieces: pieces(state, families) };
}

function filterOf(query: URLSearchParams): Filter | undefined {
  const names = query.getAll('service');
  const [name] = names;
  if ([...query.keys()].some((key) => key !== 'service') || names.length > 1) return undefined;
  if (name === undefined) return { kind: 'everything' };
  if (/^[^/:]+\/[^/:]+$/.test(name)) return { kind: 'service', name };
  return /^[^/:]+\/[^/:]+:[^/:]*\/(?:TCP|UDP|SCTP)$/.test(name) ? { kind: 'port', name } : undefined;
}

/** Selected state of one family at the time of the request; tables are immutable. */
interface Selection {
  readonly ipFamily: IpFamily;
  readonly table: ForwardingTable | undefined;
  readonly services: Iterable<ServiceForwarding>;
  readonly failed: ReadonlyMap<ServicePortKey, Failure>;
  /** Of failed Service ports that are no longer in the table. */
  readonly astray: readonly ServicePortKey[];
  readonly healthChecks: Iterable<HealthCheck>;
}

function selection({ tables, status }: DebugState, ipFamily: IpFamily, filter: Filter): Selection {
  const table = tables().get(ipFamily);
  const failed = status().families.get(ipFamily)?.failedServices ?? new Map<ServicePortKey, Failure>();
  const astray = [...failed.keys()].filter((key) => table?.services.has(key) !== true && isAsked(filter, key));
  const { services, healthChecks } = table === undefined ? nothing : selected(table, filter);
  return { ipFamily, table, services, failed, astray, healthChecks };
}

const nothing: Pick<Selection, 'services' | 'healthChecks'> = { services: [], healthChecks: [] };

function selected(table: ForwardingTable, filter: Filter): Pick<Selection, 'services' | 'healthChecks'> {
  const { services, healthChecks } = table;
  if (filter.kind === 'everything') return { services: services.values(), healthChecks: healthChecks.values() };
  if (filter.kind === 'port') {
    const service = services.get(filter.name as ServicePortKey);
    return service === undefined ? nothing : { services: [service], healthChecks: [] };
  }
  const found: ServiceForwarding[] = [];
  for (const service of services.values()) if (service.service === filter.name) found.push(service);
  const check = healthChecks.get(filter.name as ServiceKey);
  return { services: found, healthChecks: check === undefined ? [] : [check] };
}

function isAsked(filter: Filter, key: ServicePortKey): boolean {
  if (filter.kind === 'everything') return true;
  return key === filter.name || (filter.kind === 'service' && key.startsWith(`${filter.name}:`));
}

async function* pieces(state: DebugState, families: readonly Selection[]): AsyncGenerator<string, void, undefined> {
  const head = JSON.stringify({ nodeName: state.nodeName, time: timeText(state.now()) }).slice(0, -1);
  yield `${head},"families":[`;
  for (const [index, family] of families.entries()) {
    yield `${index > 0 ? ',' : ''}\n${familyHead(state, family)},"services":[`;
    yield* servicePieces(family);
    yield '\n]}';
  }
  yield '\n]}\n';
}

function familyHead(state: DebugState, { ipFamily, table, healthChecks }: Selection): string {
  const summary = {
    ...familySummary(state, ipFamily),
    ...optional('table', table, ({ podDetector, nodePortCidrs, serviceCidrs }) => ({
      podDetector,
      nodePortCidrs,
      serviceCidrs,
    })),
    healthChecks: [...healthChecks],
  };
  return JSON.stringify(summary).slice(0, -1);
}

function* servicePieces({ services, failed, astray }: Selection): Generator<string, void, undefined> {
  let lines: string[] = [];
  let endpoints = 0;
  let separator = '';
  const flush = (): string => {
    const piece = `${separator}\n${lines.join(',\n')}`;
    separator = ',';
    lines = [];
    endpoints = 0;
    return piece;
  };
  for (const service of services) {
    lines.push(JSON.stringify(serviceView(service, failed.get(service.key))));
    endpoints += service.knownEndpoints.length;
    if (lines.length === perPiece.services || endpoints >= perPiece.endpoints) yield flush();
  }
  for (const key of astray) lines.push(JSON.stringify({ key, status: statusView(failed.get(key)) }));
  if (lines.length > 0) yield flush();
}

/** Each endpoint once, with the policies that may use it; durations in seconds. */
function serviceView(service: ServiceForwarding, failure: Failure | undefined): Readonly<Record<string, unknown>> {
  const { key, protocol, frontends, lostFrontends, policies, topology, sessionAffinity } = service;
  return {
    key,
    status: statusView(failure),
    protocol,
    policies,
    topology,
    sessionAffinity:
      sessionAffinity.kind === 'none'
        ? sessionAffinity
        : { kind: sessionAffinity.kind, timeoutSeconds: sessionAffinity.timeout / 1000 },
    frontends,
    ...(lostFrontends.length === 0 ? {} : { lostFrontends }),
    endpoints: endpointViews(service),
  };
}

/** Known endpoints, each with the policies that may use it. */
export function endpointViews({ endpoints, knownEndpoints }: ServiceForwarding): readonly unknown[] {
  const cluster = new Set(endpoints.Cluster.map(placeOf));
  const local = new Set(endpoints.Local.map(placeOf));
  return knownEndpoints.map((endpoint) => {
    const place = placeOf(endpoint);
    const usedBy = [...(cluster.has(place) ? ['Cluster'] : []), ...(local.has(place) ? ['Local'] : [])];
    return { ...endpoint, usedBy };
  });
}

function placeOf({ address, port }: Endpoint): string {
  return `${address} ${port}`;
}

/** A failed Service port may have its former state, or a part of the new one. */
function statusView(failure: Failure | undefined): Readonly<Record<string, unknown>> {
  return failure === undefined ? { kind: 'applied' } : { kind: 'failed', ...failureView(failure) };
}
