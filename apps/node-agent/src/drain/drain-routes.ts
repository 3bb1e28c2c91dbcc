import {
  type ForwardingTable,
  HostError,
  type IpAddress,
  isOffered,
  messageOf,
  millis,
  type ServiceKey,
  type TrafficPolicy,
  servicePortParts,
  sleepUntil,
} from '@switchyard/core';
import { type HealthClient, type HttpAnswer, type HttpHandler, jsonAnswer, textAnswer } from '@switchyard/core/health';
import {
  connectionsPath,
  type ConnectionsReply,
  type CountedPod,
  nodePath,
  type NodeReply,
  parseConnectionsQuery,
  parseNodeQuery,
  type PodUse,
} from '@switchyard/drain-gate';
import type { DebugState } from '../http/debug-state.ts';
import { get, type Route } from '../http/route.ts';
import { lateEndpoints, type OpenChoices } from './late-endpoints.ts';
import { portsOf } from './service-ports.ts';

/** State for the answers to a drain gate. */
export interface DrainState extends Pick<DebugState, 'nodeName' | 'tables' | 'status' | 'onApplied' | 'clock'> {
  /** Who checks the health of a Service here; undefined without a health check of it. */
  readonly healthClients: (service: ServiceKey) => readonly HealthClient[] | undefined;
  /** Of an observer: the rules that acknowledge a change, those of the proxy that it observes. Default: the tables are in the kernel. */
  readonly openChoices?: OpenChoices;
  /** Open connections of a pod. */
  readonly countConnections: (pod: CountedPod) => Promise<Omit<ConnectionsReply, 'node'>>;
}

/** A gate asks with one request at a time; several may run during a change of version. */
const maxWaiting = 32;
/** There is no notice of a change without an apply, such as of an unknown Service. */
const lookInterval = millis(1000);
/** Pause between two looks at the rules of an observed proxy. */
const proxyInterval = millis(25);

/** Routes for a drain gate, on the health port. They only read. */
export function drainRoutes(state: DrainState): readonly Route[] {
  return [get(nodePath, nodeRoute(state)), get(connectionsPath, connectionsRoute(state))];
}

/** Answers when the kernel has the requested version, at the latest after the requested time. */
function nodeRoute(state: DrainState): HttpHandler {
  let waiting = 0;
  return async ({ query }, signal): Promise<HttpAnswer> => {
    const question = parseNodeQuery(query);
    if (typeof question === 'string') return textAnswer(400, `${question}\n`);
    if (waiting >= maxWaiting) return textAnswer(429, `429 ${maxWaiting} others wait\n`);
    waiting++;
    try {
      const end = state.clock.monotonic() + question.timeout;
      await untilVersion(state, { version: question.after, end }, signal);
      const late = await untilProxy(state, { services: question.services, end }, signal);
      return jsonAnswer(200, nodeReply(state, question.services, late));
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      return textAnswer(503, `${messageOf(error)}\n`);
    } finally {
      waiting--;
    }
  };
}

interface Deadline {
  readonly version: number;
  /** Of CLOCK_MONOTONIC. */
  readonly end: number;
}

async function untilVersion(state: DrainState, { version, end }: Deadline, signal: AbortSignal): Promise<void> {
  const { clock } = state;
  let applied = Promise.withResolvers<void>();
  const stop = state.onApplied(() => applied.resolve());
  try {
    while (appliedVersion(state) < version) {
      const rest = end - clock.monotonic();
      if (rest <= 0) return;
      await sleepUntil(applied.promise, { clock, duration: millis(Math.min(rest, lookInterval)) }, signal);
      applied = Promise.withResolvers();
    }
  } finally {
    stop();
  }
}

/** Waits until the observed proxy has written what it had not at first; returns what it has not now. Rejects with `HostError`. */
async function untilProxy(
  { tables, openChoices, clock }: DrainState,
  { services, end }: { readonly services: readonly ServiceKey[]; readonly end: number },
  signal: AbortSignal,
): Promise<readonly PodUse[]> {
  if (openChoices === undefined) return [];
  const textOf = ({ address, service }: PodUse): string => `${service} ${address}`;
  let late = lateEndpoints(tables(), services, openChoices);
  const first = new Set(late.map(textOf));
  while (late.some((one) => first.has(textOf(one))) && clock.monotonic() < end) {
    await clock.sleep(proxyInterval, signal);
    late = lateEndpoints(tables(), services, openChoices);
  }
  return late;
}

/** Of the family that is behind. */
function appliedVersion({ status }: Pick<DrainState, 'status'>): number {
  return Math.min(...[...status().families.values()].map(({ slicesVersion }) => slicesVersion));
}

function nodeReply(state: DrainState, services: readonly ServiceKey[], late: readonly PodUse[]): NodeReply {
  const tables = [...state.tables().values()];
  const asked = new Set(services);
  const failed = [...state.status().families.values()]
    .flatMap(({ failedServices }) => [...failedServices.keys()])
    .map((key) => serviceOf(key))
    .filter((service) => asked.has(service));
  return {
    node: state.nodeName,
    slicesVersion: appliedVersion(state),
    failed: [...new Set(failed)],
    used: [...late, ...[...asked].flatMap((service) => usesOf(service, tables, state))],
  };
}

function serviceOf(key: Parameters<typeof servicePortParts>[0]): ServiceKey {
  const { namespace, name } = servicePortParts(key);
  return `${namespace}/${name}` as ServiceKey; // the part before the port
}

/** Endpoints of a Service that end, and to which rules of this node lead new connections. */
function usesOf(
  service: ServiceKey,
  tables: readonly ForwardingTable[],
  { healthClients }: DrainState,
): readonly PodUse[] {
  const ports = tables.flatMap((table) => portsOf(table, service));
  const policiesOf = new Map<IpAddress, Set<TrafficPolicy>>();
  for (const policy of ['Cluster', 'Local'] as const) {
    for (const { address } of ports.flatMap(({ endpoints }) => endpoints[policy]).filter((one) => !isOffered(one))) {
      policiesOf.set(address, (policiesOf.get(address) ?? new Set()).add(policy));
    }
  }
  const isOnlyFromOutside = ports.every(({ policies }) => policies.internal !== 'Local');
  return [...policiesOf].map(([address, policies]) => {
    const checkedBy = policies.has('Cluster') || !isOnlyFromOutside ? undefined : healthClients(service);
    return { address, service, policies: [...policies], ...(checkedBy === undefined ? {} : { checkedBy }) };
  });
}

function connectionsRoute({ nodeName, countConnections }: DrainState): HttpHandler {
  return async ({ query }): Promise<HttpAnswer> => {
    const pod = parseConnectionsQuery(query);
    if (pod === undefined) return textAnswer(400, connectionsUsage);
    const reply: ConnectionsReply = { node: nodeName, ...(await countConnections(pod)) };
    return jsonAnswer(200, reply);
  };
}

const connectionsUsage = `usage: ${connectionsPath}?pod=ADDRESS[,ADDRESS][&tcp=PORT[,PORT...]][&udp=PORTS][&sctp=PORTS]\n`;
