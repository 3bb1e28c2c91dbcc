import { type Logger, runTogether, withFields } from '@switchyard/core';
import {
  ApiEventRecorder,
  type ApiServerConnection,
  controllerEventPolicy,
  newApiClient,
  runAsLeader,
  sendJson,
} from '@switchyard/core/kubernetes';
import { watchCluster } from '../cluster/watch-cluster.ts';
import type { LeaseConfig } from '../config/run-config.ts';
import type { PlanDefaults } from '../plan/settings.ts';
import type { LoadBalancerRuntime } from '../runtime/runtime.ts';
import { version } from '../version.ts';
import type { AddressAllocator } from './address-allocator.ts';
import { ClusterController } from './cluster-controller.ts';
import type { Disturbances } from './disturbances.ts';
import type { Host } from './host.ts';
import { eventController, ServiceEvents } from './service-events.ts';
import { newServiceWriter } from './service-writer.ts';

/** A cluster and how to reach its API server. */
export interface ReachableCluster {
  readonly name: string;
  readonly connection: ApiServerConnection;
}

/** Parts that all clusters of one controller share. */
export interface ServingOptions {
  readonly host: Pick<Host, 'clock' | 'random' | 'log' | 'identity'>;
  readonly runtime: LoadBalancerRuntime;
  readonly addresses: AddressAllocator;
  readonly disturbances: Disturbances;
  readonly defaults: PlanDefaults;
  /** Undefined: no other controller serves the cluster. */
  readonly lease: LeaseConfig | undefined;
}

/**
 * Serves one cluster while holding its lease, and waits while another controller holds it. Waits for an unreachable API
 * server. Rejects with `signal.reason` when aborted.
 */
export async function serveCluster(
  cluster: ReachableCluster,
  options: ServingOptions,
  signal: AbortSignal,
): Promise<void> {
  const { host, lease } = options;
  const log = withFields(host.log, { cluster: cluster.name });
  const work = (leading: AbortSignal): Promise<void> => controlCluster(cluster, { ...options, log }, leading);
  if (lease === undefined) return work(signal);
  const { clock, random, identity } = host;
  const send = sendJson.bind(undefined, { connection: cluster.connection, clock, userAgent });
  await runAsLeader({ ...lease, send, clock, random, identity, log }, work, signal);
}

const userAgent = `switchyard-lb/${version}`;

async function controlCluster(
  { name, connection }: ReachableCluster,
  { host, runtime, addresses, disturbances, defaults, log }: ServingOptions & { readonly log: Logger },
  signal: AbortSignal,
): Promise<void> {
  const { clock, random, identity } = host;
  const send = sendJson.bind(undefined, { connection, clock, userAgent });
  const reporter = { controller: eventController, instance: `${eventController}-${identity}` };
  await using recorder = new ApiEventRecorder({ send, reporter, clock, logger: log, policy: controllerEventPolicy });
  await using client = newApiClient(connection, { clock, userAgent });
  const controller = new ClusterController({
    cluster: name,
    runtime,
    addresses,
    defaults,
    writer: newServiceWriter({ send, clock }),
    events: new ServiceEvents(recorder),
    clock,
    log,
  });
  using _disturbed = disturbances.listen((which) => controller.disturbed(which));
  const onChange = controller.observe.bind(controller);
  log.info('serving the cluster', { server: connection.url.origin });
  await runTogether(
    [(stop) => controller.run(stop), (stop) => watchCluster({ client, clock, random, log, onChange }, stop)],
    signal,
  );
  signal.throwIfAborted();
}
