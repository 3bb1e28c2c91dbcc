import type { Clock, Logger, Random } from '@switchyard/core';
import { type GateView, projectPod, runReadinessGate, type WaitingPod } from '@switchyard/drain-gate';
import {
  ApiEventRecorder,
  type ApiServerConnection,
  controllerEventPolicy,
  defaultTimings,
  newApiClient,
  Reflector,
  runAsLeader,
  sendJson,
} from '../api-server-access.ts';

/** Options of the readiness gate of a drain gate. */
export interface ReadinessOptions {
  readonly connection: ApiServerConnection;
  readonly lease: { readonly namespace: string; readonly name: string };
  /** Labels of the pods to watch, in the API's text form; empty for all. */
  readonly selector: string;
  /** Unique among the replicas. */
  readonly identity: string;
  readonly userAgent: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** Keeps the condition of pods while this replica holds the lease. Rejects with `signal.reason` when aborted. */
export async function keepConditions(view: GateView, options: ReadinessOptions, signal: AbortSignal): Promise<void> {
  const { connection, lease, selector, identity, userAgent, clock, random, logger } = options;
  const send = sendJson.bind(undefined, { connection, clock, userAgent });
  const selectors = {
    fieldSelector: 'status.phase=Running',
    ...(selector === '' ? {} : { labelSelector: selector }),
  };
  const query = { kind: 'Pod', path: '/api/v1/pods', selectors, isOptional: false } as const;
  const lead = async (leading: AbortSignal): Promise<void> => {
    const reporter = { controller: 'switchyard.dev/readiness-gate', instance: identity };
    await using events = new ApiEventRecorder({ send, reporter, clock, logger, policy: controllerEventPolicy });
    await using client = newApiClient(connection, { clock, userAgent });
    await runReadinessGate(
      {
        view,
        followPods: (deliver, stop) => {
          const shared = { query, client, project: projectPod, deliver, clock, random, log: logger };
          return new Reflector<'Pod', WaitingPod>({ ...shared, timings: defaultTimings }).run(stop);
        },
        send,
        events,
        clock,
        random,
        logger,
      },
      leading,
    );
  };
  await runAsLeader({ ...lease, send, identity, clock, random, log: logger }, lead, signal);
}
