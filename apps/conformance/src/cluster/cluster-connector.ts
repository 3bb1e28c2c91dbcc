import { addressAndPort, type IpFamily, ipFamilyOf, millis, UsageError } from '@switchyard/core';
import type { ProbeConnection, ProbeResult, TrafficProbe } from '@switchyard/lab';
import type { ScenarioFlow } from '@switchyard/scenarios';
import type { FlowConnector } from '../model/test-environment.ts';
import type { AddressBook } from './address-book.ts';
import { type EchoPool, realPort } from './echo-pool.ts';
import { RemoteLoad } from './remote-load.ts';
import { type AnswerContext, seenOf } from './seen.ts';
import type { TrafficPod } from './start-pods.ts';
import { callPod, type Caller } from './traffic-caller.ts';

/** Pods that send, by source class. */
export interface Senders {
  readonly pod: TrafficPod;
  readonly node: TrafficPod;
  readonly outside: TrafficPod;
}

/** Inputs for sending flows in a cluster. */
export interface ConnectorParts {
  readonly caller: Caller;
  readonly senders: Senders;
  readonly book: AddressBook;
  readonly pool: EchoPool;
  /** All addresses of the node under test. */
  readonly nodeAddresses: readonly string[];
}

/** Timeout of one attempt while waiting for an answer, in milliseconds. Short, so that attempts follow quickly. */
const awaitedTimeout = 300;
/** With more attempts at once, a pod with little CPU takes an answer for a drop. */
const mostAtOnce = 60;

/** A flow that is ready to be sent in a cluster. */
export function connectInCluster(flow: ScenarioFlow, place: ConnectorParts, signal: AbortSignal): FlowConnector {
  const { caller, book, pool } = place;
  const sender = senderOf(flow, place);
  const target = pool.podOf(flow.to) === undefined ? book.destination(flow.to, flow.port, flow.protocol) : undefined;
  const to = target ?? { address: pool.realAddress(flow.to), port: realPort(flow.port) };
  const source = sourceOf(sender, ipFamilyOf(to.address));
  const context: AnswerContext = {
    flow,
    source,
    nodeAddresses: place.nodeAddresses,
    endpointOf: (pod, ipFamily) => pool.endpointOf(pod, ipFamily),
  };
  const from = flow.sourcePort === undefined ? { isFromFreshPort: true } : { sourcePort: flow.sourcePort };
  const probe: TrafficProbe = { protocol: flow.protocol === 'UDP' ? 'udp' : 'tcp', ...to, source, ...from };
  const attempts = async (count: number): Promise<readonly ProbeResult[]> => {
    const argument = { probes: Array.from({ length: count }, () => probe), isOneByOne: flow.sourcePort !== undefined };
    return (await callPod(caller, sender, { name: 'probe', argument }, signal)).results;
  };
  const needTcp = (what: string): void => {
    if (flow.protocol === 'TCP') return;
    throw new UsageError('cluster.dial', `cannot ${what} over ${flow.protocol}: only over TCP`);
  };
  return {
    attempts: async (count) => {
      const results: ProbeResult[] = [];
      while (results.length < count) results.push(...(await attempts(Math.min(mostAtOnce, count - results.length))));
      return results.map((result) => seenOf(result, context));
    },
    hold: async () => {
      needTcp('keep a connection open');
      const { result, connection } = await callPod(caller, sender, { name: 'open', argument: probe }, signal);
      const held = connection === undefined ? undefined : heldConnection(caller, sender, connection, signal);
      return { seen: seenOf(result, context), connection: held };
    },
    load: (options) => {
      needTcp('run a load');
      const url = `tcp://${addressAndPort(to.address, to.port)}`;
      return new RemoteLoad({ caller, pod: sender, url }, options, signal);
    },
    firstAnswer: async (by, { interval, timeout }) => {
      const until = { by: pool.podOf(by)?.name ?? '', interval, timeout };
      const { isFromFreshPort: _, ...request } = probe;
      const argument = { probe: { ...request, timeout: awaitedTimeout }, until };
      const { result, at } = await callPod(caller, sender, { name: 'await', argument }, signal);
      const last = seenOf(result, context);
      return { at: last.kind === 'endpoint' && last.address === by ? millis(at) : undefined, last };
    },
  };
}

function senderOf({ from, fromEndpoint }: ScenarioFlow, { senders, pool }: ConnectorParts): TrafficPod {
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

function heldConnection(caller: Caller, pod: TrafficPod, connection: number, signal: AbortSignal): ProbeConnection {
  return {
    exchange: (text, timeout = exchangeTimeout) =>
      callPod(caller, pod, { name: 'exchange', argument: { connection, text, timeout } }, signal),
    close: async () => {
      await callPod(caller, pod, { name: 'close', argument: { connection } }, signal);
    },
  };
}
