import { addressAndPort, ipFamilyOf, millis, UsageError } from '@switchyard/core';
import { freshPort, startLoad } from '@switchyard/lab';
import { nodeAddresses, type ScenarioFlow } from '@switchyard/scenarios';
import type { AskingSocket, FlowConnector, Seen } from '../model/test-environment.ts';
import { type AnswerContext, seenOf } from './answers.ts';
import type { LabHosts } from './lab-hosts.ts';

/** Timeout of one attempt while waiting for an answer, in milliseconds. Short, so that attempts follow quickly. */
const awaitedTimeout = 100;

export async function connectInLab(flow: ScenarioFlow, hosts: LabHosts, signal: AbortSignal): Promise<FlowConnector> {
  const { host, source } = hosts.senderOf(flow);
  if (flow.from === 'outside') await hosts.routeFromOutside([flow.to]);
  const prober = await hosts.proberIn(host, signal);
  const family = ipFamilyOf(flow.to);
  const context: AnswerContext = {
    endpointOf: (echo) => hosts.addressesByEcho.get(echo)?.find((address) => ipFamilyOf(address) === family),
    sender: flow.fromEndpoint,
    portOf: (port) => port,
    isMasqueraded: (seen) => {
      const isNodes = seen === nodeAddresses[family]['node1'];
      return isNodes || seen === source ? isNodes : undefined;
    },
    wanted: '',
  };
  const request = { address: flow.to, port: flow.port, source };
  const protocol = flow.protocol === 'UDP' ? 'udp' : 'tcp';
  const attempt = async (): Promise<Seen> => {
    const sourcePort = flow.sourcePort ?? freshPort(host);
    return seenOf(await prober.probe({ protocol, ...request, sourcePort }), context);
  };
  const askingSocket = async (isUnconnected: boolean): Promise<AskingSocket> => {
    if (flow.protocol !== 'UDP') {
      throw new UsageError('conformance.protocol', 'only a UDP socket can send several requests');
    }
    const sourcePort = flow.sourcePort ?? freshPort(host);
    const socket = await prober.connectUdp({ protocol: 'udp', ...request, sourcePort, isUnconnected });
    return { ask: async () => seenOf(await socket.ask(), context), close: () => socket.close() };
  };
  const needTcp = (what: string): void => {
    if (flow.protocol === 'TCP') return;
    throw new UsageError('conformance.protocol', `cannot ${what} over ${flow.protocol}: only over TCP`);
  };
  return {
    attempts: async (count) => {
      if (flow.protocol === 'SCTP') {
        const results = await hosts.alone(`${host.name} ${flow.to}`, () => prober.sctp({ ...request, count }));
        return results.map((result) => seenOf(result, context));
      }
      if (flow.sourcePort === undefined) return Promise.all(Array.from({ length: count }, attempt));
      const seen: Seen[] = [];
      for (let left = count; left > 0; left--) seen.push(await attempt());
      return seen;
    },
    hold: async () => {
      needTcp('keep a connection open');
      const sourcePort = flow.sourcePort ?? freshPort(host);
      const { result, connection } = await prober.open({ protocol: 'tcp', ...request, sourcePort });
      return { seen: seenOf(result, context), connection };
    },
    connected: () => askingSocket(false),
    unconnected: () => askingSocket(true),
    load: (options) => {
      needTcp('run a load');
      return startLoad(host, { ...options, url: `tcp://${addressAndPort(flow.to, flow.port)}` });
    },
    firstAnswer: async (by, { interval, timeout }) => {
      if (flow.protocol === 'SCTP') throw new UsageError('conformance.protocol', 'cannot wait for an answer over SCTP');
      const until = { by: hosts.echoAt(by), interval, timeout };
      const last = await prober.awaitAnswer({ protocol, ...request, timeout: awaitedTimeout }, until);
      const seen = seenOf(last.result, context);
      return { at: seen.kind === 'endpoint' && seen.address === by ? millis(last.at) : undefined, last: seen };
    },
  };
}
