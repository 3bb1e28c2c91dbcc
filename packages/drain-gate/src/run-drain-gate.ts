import {
  aborted,
  type Clock,
  type ClusterStateSource,
  HostError,
  type Logger,
  type NodeName,
  type Port,
  seconds,
} from '@switchyard/core';
import type { HttpListener, ListenTarget } from '@switchyard/core/health';
import { askConnections, askNode, type NodePlace } from './ask-http.ts';
import { drain, type DrainParts } from './drain.ts';
import { gateHandler, verdictText } from './gate-routes.ts';
import { GateState } from './gate-state.ts';
import { NodeWatch } from './node-watch.ts';

/** Options of a drain gate. */
export interface DrainGateOptions {
  /** All Nodes and EndpointSlices. */
  readonly source: ClusterStateSource;
  readonly listener: HttpListener;
  readonly target: ListenTarget;
  /** Health port of the nodes' agents. */
  readonly nodePort: Port;
  /** Failing health checks in a row after which a load balancer has left a node. */
  readonly failures: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Time that open requests get when the gate stops; another replica takes new ones. */
const stopTime = seconds(4);

/** Runs a drain gate until aborted, then answers what is open, for 4 s at most. Rejects with `HostError` if it cannot listen, and if the source can never recover. */
export async function runDrainGate(options: DrainGateOptions, signal: AbortSignal): Promise<void> {
  const { source, listener, target, nodePort, failures, clock, logger } = options;
  const state = new GateState();
  let changed = Promise.withResolvers<void>();
  const watches = new Map<NodeName, NodeWatch>();
  const placeOf = (node: NodeName): NodePlace => {
    const [address] = state.nodes.get(node)?.addresses ?? [];
    if (address === undefined) throw new HostError('drain.address', `Node ${node} has no address in its status`);
    return { address, port: nodePort };
  };
  const watchOf = (node: NodeName): NodeWatch => {
    const ask = async (...[question, stop]: Parameters<ConstructorParameters<typeof NodeWatch>[0]['ask']>) =>
      askNode(placeOf(node), question, stop);
    const watch = watches.get(node) ?? new NodeWatch({ ask, failures, clock });
    watches.set(node, watch);
    return watch;
  };
  const parts: DrainParts = {
    state,
    changed: () => changed.promise,
    waitFor: (node, want, stop) => watchOf(node).add(want, stop),
    countConnections: async (node, pod, stop) => askConnections(placeOf(node), pod, stop),
    clock,
  };
  const end = new AbortController();
  const handler = gateHandler({
    isInSync: () => state.isInSync,
    drain: (request, stop) => drain(request, parts, AbortSignal.any([stop, end.signal])),
    log: (goal, { isSafe, addresses, waited, services, nodes, connections, reasons }) => {
      const pod = { pod: addresses.join(','), services, waitedMs: Math.round(waited), nodes: nodes.total, connections };
      if (isSafe) logger.info(verdictText(goal, isSafe), { ...pod, slowest: nodes.slowest?.node, reasons });
      else logger.warn(verdictText(goal, isSafe), { ...pod, reasons: reasons.slice(0, 5) });
    },
  });
  await using socket = await listener.listen(target, handler);
  logger.info('the drain gate listens', { port: target.port });
  const stopped = aborted(signal).then(async () => {
    await Promise.race([socket.release(), clock.sleep(stopTime, end.signal).catch(() => undefined)]);
    end.abort(signal.reason);
  });
  for await (const batch of source.batches(end.signal)) {
    state.apply(batch);
    for (const node of watches.keys()) if (!state.nodes.has(node)) watches.delete(node);
    changed.resolve();
    changed = Promise.withResolvers();
  }
  await stopped;
}
