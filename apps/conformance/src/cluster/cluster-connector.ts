import { addressAndPort, type IpFamily, ipFamilyOf, millis, type SourceClass, UsageError } from '@switchyard/core';
import type { ProbeResult, TrafficProbe } from '@switchyard/lab';
import type { ScenarioFlow } from '@switchyard/scenarios';
import type { AskingSocket, FlowConnector } from '../model/test-environment.ts';
import type { AddressBook } from './object-writer.ts';
import { type EchoPool, realPort } from './echo-pool.ts';
import { heldConnection } from './traffic-sender.ts';
import { startRemoteLoad } from './remote-load.ts';
import { seenInCluster } from './echo-pool.ts';
import type { LoadBalancing } from './load-balancing.ts';
import type { NodePair } from './preflight.ts';
import type { TrafficPod } from './start-pods.ts';
import { type Caller, callsOf } from './traffic-caller.ts';

export interface ClusterPlace {
  readonly caller: Caller;
  readonly run: string;
  readonly senders: Readonly<Record<SourceClass, TrafficPod>>;
  readonly book: AddressBook;
  readonly pool: EchoPool;
  readonly nodes: NodePair;
  readonly nodeAddresses: readonly string[];
  readonly balancing: LoadBalancing;
}

/** Timeout of one attempt while waiting for an answer, in milliseconds. Short, so that attempts follow quickly. */
const awaitedTimeout = 300;
/** With more attempts at once, a pod with little CPU takes an answer for a drop. */
const mostAtOnce = 60;

export function connectInCluster(flow: ScenarioFlow, place: ClusterPlace, signal: AbortSignal): FlowConnector {
  const { caller, book, pool } = place;
  const sender = senderOf(flow, place);
  const call = callsOf(caller, sender);
  const target = pool.podOf(flow.to) === undefined ? book.destination(flow.to, flow.port, flow.protocol) : undefined;
  const to = target ?? { address: pool.realAddress(flow.to), port: realPort(flow.port) };
  const source = sourceOf(sender, ipFamilyOf(to.address));
  const context = { ...place, flow, source, endpointOf: (pod: string) => pool.endpointOf(pod, ipFamilyOf(flow.to)) };
  const from = flow.sourcePort === undefined ? { isFromFreshPort: true } : { sourcePort: flow.sourcePort };
  const probe: TrafficProbe = { protocol: flow.protocol === 'UDP' ? 'udp' : 'tcp', ...to, source, ...from };
  const attempts = async (count: number): Promise<readonly ProbeResult[]> => {
    const argument = { probes: Array.from({ length: count }, () => probe), isOneByOne: flow.sourcePort !== undefined };
    return (await call('probe', argument, signal)).results;
  };
  const askingSocket = async (isUnconnected: boolean): Promise<AskingSocket> => {
    if (flow.protocol !== 'UDP') {
      throw new UsageError('cluster.dial', 'only a UDP socket can send several requests');
    }
    const { connection } = await call('connect', { ...probe, isUnconnected }, signal);
    return {
      ask: async () => seenInCluster(await call('ask', { connection, timeout: exchangeTimeout }, signal), context),
      close: async () => {
        await call('close', { connection }, signal);
      },
    };
  };
  const needTcp = (what: string): void => {
    if (flow.protocol === 'TCP') return;
    throw new UsageError('cluster.dial', `cannot ${what} over ${flow.protocol}: only over TCP`);
  };
  return {
    attempts: async (count) => {
      const results: ProbeResult[] = [];
      while (results.length < count) results.push(...(await attempts(Math.min(mostAtOnce, count - results.length))));
      return results.map((result) => seenInCluster(result, context));
    },
    hold: async () => {
      needTcp('keep a connection open');
      const { result, connection } = await call('open', probe, signal);
      const held = connection === undefined ? undefined : heldConnection(call, connection, signal);
      return { seen: seenInCluster(result, context), connection: held };
    },
    connected: () => askingSocket(false),
    unconnected: () => askingSocket(true),
    load: (options) => {
      needTcp('run a load');
      const url = `tcp://${addressAndPort(to.address, to.port)}`;
      return startRemoteLoad(call, { ...options, url }, signal);
    },
    firstAnswer: async (by, { interval, timeout }) => {
      const until = { by: pool.podOf(by)?.name ?? '', interval, timeout };
      const { isFromFreshPort: _, ...request } = probe;
      const argument = { probe: { ...request, timeout: awaitedTimeout }, until };
      const { result, at } = await call('await', argument, signal);
      const last = seenInCluster(result, context);
      return { at: last.kind === 'endpoint' && last.address === by ? millis(at) : undefined, last };
    },
  };
}

function senderOf({ from, fromEndpoint }: ScenarioFlow, { senders, pool }: ClusterPlace): TrafficPod {
  if (fromEndpoint === undefined) return senders[from];
  const pod = pool.podOf(fromEndpoint);
  if (pod !== undefined) return pod;
  throw new UsageError('cluster.dial', `no pod stands for the sender ${fromEndpoint}`);
}

function sourceOf({ name, addresses }: TrafficPod, ipFamily: IpFamily): string {
  const source = addresses[ipFamily];
  if (source !== undefined) return source;
  throw new UsageError('cluster.dial', `pod ${name} has no ${ipFamily} address to send from`);
}

const exchangeTimeout = 1500;
