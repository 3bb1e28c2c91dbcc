import { aborted, type Clock, type ClusterStateSource, type Logger, runTogether, seconds } from '@switchyard/core';
import type { HttpListener, ListenTarget } from '@switchyard/core/health';
import { drain, type DrainAnswer, type DrainParts, type DrainRequest } from './drain.ts';
import { gateHandler, verdictText } from './gate-routes.ts';
import { GateState } from './gate-state.ts';
import { NodeWatches, type NodeWatchesOptions } from './node-watches.ts';

/** Options of a drain gate. */
export interface DrainGateOptions extends Pick<NodeWatchesOptions, 'nodePort' | 'failures'> {
  /** All Nodes and EndpointSlices. */
  readonly source: ClusterStateSource;
  readonly listener: HttpListener;
  readonly target: ListenTarget;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Runs beside the gate until aborted, with its view of the cluster. Default: nothing. */
  readonly beside?: ((view: GateView, signal: AbortSignal) => Promise<void>) | undefined;
}

/** A gate's view of the cluster. */
export type GateView = Omit<DrainParts, 'countConnections'>;

/** Time that open requests get when the gate stops; another replica takes new ones. */
const stopTime = seconds(4);

/**
 * Runs a drain gate until aborted, then answers what is open, for 4 s at most. Rejects with `HostError` if it cannot listen, if the source
 * can never recover, and with the error of `beside`.
 */
export async function runDrainGate(options: DrainGateOptions, signal: AbortSignal): Promise<void> {
  const { source, listener, target, nodePort, failures, clock, logger, beside } = options;
  const state = new GateState();
  const end = new AbortController();
  const watches = new NodeWatches({ state, nodePort, failures, clock, signal: end.signal });
  let changed = Promise.withResolvers<void>();
  const parts: DrainParts = {
    state,
    changed: () => changed.promise,
    waitFor: (node, want) => watches.waitFor(node, want),
    countConnections: (node, pod, stop) => watches.countConnections(node, pod, stop),
    clock,
  };
  const handler = gateHandler({
    isInSync: () => state.isInSync,
    drain: (request, stop) => drain(request, parts, AbortSignal.any([stop, end.signal])),
    log: (goal, answer) => logAnswer(logger, goal, answer),
  });
  await using socket = await listener.listen(target, handler);
  logger.info('the drain gate listens', { port: target.port });
  const stopped = aborted(signal).then(async () => {
    await Promise.race([socket.release(), clock.sleep(stopTime, end.signal).catch(() => undefined)]);
    end.abort(signal.reason);
  });
  const follow = async (stop: AbortSignal): Promise<void> => {
    for await (const batch of source.batches(stop)) {
      state.apply(batch);
      watches.follow();
      changed.resolve();
      changed = Promise.withResolvers();
    }
  };
  await runTogether([follow, (stop) => beside?.(parts, stop)], end.signal);
  await stopped;
}

function logAnswer(
  logger: Logger,
  goal: DrainRequest['goal'],
  { isSafe, addresses, waited, services, nodes, open, reasons }: DrainAnswer,
): void {
  const pod = { pod: addresses.join(','), services, waitedMs: Math.round(waited), nodes: nodes.total, ...open };
  if (isSafe) logger.info(verdictText(goal, isSafe), { ...pod, slowest: nodes.slowest?.node, reasons });
  else logger.warn(verdictText(goal, isSafe), { ...pod, reasons: reasons.slice(0, 5) });
}
