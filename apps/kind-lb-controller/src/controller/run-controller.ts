import { InvariantError, type Logger } from '@switchyard/core';
import { kubeconfigConnection } from '@switchyard/core/kubernetes';
import type { RunConfig } from '../config/run-config.ts';
import { type EventLog, openEventLog, serverEvent } from '../haproxy/event-log.ts';
import type { TargetChange } from '../runtime/runtime.ts';
import { AddressAllocator } from './address-allocator.ts';
import { ClusterSet } from './cluster-set.ts';
import { Disturbances } from './disturbances.ts';
import type { Host } from './host.ts';
import { openRuntime } from './open-runtime.ts';
import { type ReachableCluster, serveCluster, type ServingOptions } from './serve-cluster.ts';

/**
 * Serves all clusters that the flags name, until aborted; then rejects with `signal.reason`. Rejects with `ConfigError` if it
 * cannot begin. Load balancers that are containers stay; HAProxy as a process stays with `--keep-on-exit`.
 */
export async function runController(config: RunConfig, host: Host, signal: AbortSignal): Promise<void> {
  const { clock, log } = host;
  await using stack = new AsyncDisposableStack();
  const eventLog = config.eventLog === undefined ? undefined : stack.use(openEventLog(config.eventLog));
  const disturbances = new Disturbances();
  const listener = {
    onDisturbed: disturbances.report.bind(disturbances),
    onTargetChange: (change: TargetChange) => reportChange(change, log, eventLog),
  };
  const { runtime, discovery } = await openRuntime(config, { host, listener }, stack, signal);
  log.info('starting', { pid: process.pid, ...summaryOf(config) });
  const addresses = new AddressAllocator({ readSource: (stop) => runtime.addressSource(stop), clock });
  const { defaults, lease, clusters } = config;
  const serving: ServingOptions = { host, runtime, addresses, disturbances, defaults, lease };
  if (clusters.kind === 'kubeconfig' || discovery === undefined) {
    // Awaited here: leaving disposes the runtime.
    return await serveCluster(await onlyCluster(config, host), serving, signal);
  }
  const set = stack.use(
    new ClusterSet({
      serve: (cluster, stop) => serveCluster(cluster, serving, stop),
      onGone: (cluster) => addresses.forget(cluster),
      clock,
      log,
    }),
  );
  await discovery.watchClusters((found) => set.update(found), signal);
}

async function onlyCluster({ clusters }: RunConfig, { clock }: Host): Promise<ReachableCluster> {
  if (clusters.kind === 'discovery') throw new InvariantError('this runtime finds no clusters');
  return { name: clusters.name, connection: await kubeconfigConnection(clusters.file, clock) };
}

function reportChange(change: TargetChange, log: Logger, eventLog: EventLog | undefined): void {
  const event = serverEvent(change);
  eventLog?.append(event);
  const { cluster, service, node, port, ipFamily, reason } = event;
  const fields = { cluster, service, port, ipFamily, node, reason, at: event.time };
  log.info(change.isUp ? 'node is UP' : 'node is DOWN', fields);
}

function summaryOf({ runtime, clusters, defaults }: RunConfig): Readonly<Record<string, unknown>> {
  const { name, interval, fall, rise } = defaults.healthProfileOf(undefined, {});
  const where =
    runtime.kind === 'process'
      ? { runDirectory: runtime.runDirectory }
      : { engine: runtime.engine, network: runtime.network, image: runtime.image };
  const served = clusters.kind === 'kubeconfig' ? clusters.name : clusters.names.join(', ') || 'all of kind';
  return { runtime: runtime.kind, ...where, clusters: served, profile: name, interval, fall, rise };
}
