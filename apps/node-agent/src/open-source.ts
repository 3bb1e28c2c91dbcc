import { readdir } from 'node:fs/promises';
import {
  type Clock,
  type ClusterStateSource,
  ConfigError,
  type EventRecorder,
  logEvents,
  type Logger,
  messageOf,
  type NodeName,
  type Random,
  seconds,
} from '@switchyard/core';
import type { ApiServerConnection, EventReporter } from '@switchyard/core/kubernetes';
import { collectedFamily } from '@switchyard/host';
import type { ApiServerContact } from './agent-host.ts';
import type { ClusterPlace, SourceConfig } from './config.ts';
import { contactRestoredEvent } from './events/agent-events.ts';
import type { MetricsPage } from './metrics/metrics-page.ts';
import { version } from './version.ts';

interface SourceNeeds {
  readonly nodeName: NodeName;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metricsPage: MetricsPage;
}

interface OpenedSource {
  readonly source: ClusterStateSource;
  /** For the log: the API server's URL, without credentials, or the folder. */
  readonly from: string;
  /** Absent for sources without an API server. */
  readonly contact?: ApiServerContact;
  /** Disposing it sends pending Events. */
  readonly events: EventRecorder & AsyncDisposable;
}

const userAgent = `switchyard-agent/${version}`;

/** Opens the configured source. Rejects with `ConfigError` if it cannot be used at all. */
export async function openSource(config: SourceConfig, needs: SourceNeeds): Promise<OpenedSource> {
  const { nodeName, clock, random, logger: log, metricsPage } = needs;
  if (config.kind === 'manifests') {
    await checkFolder(config.folder);
    const { ManifestSource } = await import('@switchyard/core/manifests');
    const source = new ManifestSource({ folder: config.folder, clock, log });
    return { source, from: config.folder, events: manifestEvents(log) };
  }
  const { ApiEventRecorder, ApiServerAddresses, KubernetesSource, SourceMetrics, sendJson } =
    await import('./api-server-access.ts');
  const connection = await openConnection(config, clock);
  const { metrics } = metricsPage;
  const send = sendJson.bind(undefined, { connection, clock, userAgent, metrics });
  const events = new ApiEventRecorder({ send, reporter: reporterOf(nodeName), clock, logger: log });
  const sourceMetrics = new SourceMetrics(metrics, clock, (silence) =>
    events.record(contactRestoredEvent(nodeName, silence)),
  );
  metricsPage.addCollector(() => {
    const lags = [...sourceMetrics.lags()].map(([resource, lag]) => [lag / 1000, resource] as const);
    return [collectedFamily('switchyard_source_lag_seconds', lags)];
  });
  const addresses = new ApiServerAddresses(connection.url);
  const nodes = { kind: 'one', name: nodeName } as const;
  const shared = { connection, nodes, clock, random, log, userAgent, metrics, sourceMetrics };
  return {
    source: new KubernetesSource({ ...shared, addresses }),
    from: connection.url.origin,
    contact: {
      addresses: () => addresses.current,
      onAddresses: (listener) => addresses.onChange(listener),
      silence: () => sourceMetrics.silence,
    },
    events,
  };
}

/** Maximum time for the last Events of a process, which delay its restart. */
const lastEventsTime = seconds(3);

/** Opens the Events of a process that ends, without a source. Rejects with `ConfigError` if nothing names the API server. */
export async function openLastEvents(
  { source, nodeName }: ClusterPlace,
  { clock, logger }: Pick<SourceNeeds, 'clock' | 'logger'>,
): Promise<EventRecorder & AsyncDisposable> {
  if (source.kind === 'manifests') return manifestEvents(logger);
  const { ApiEventRecorder, sendJson } = await import('./api-server-access.ts');
  const connection = await openConnection(source, clock);
  const send = sendJson.bind(undefined, { connection, clock, userAgent });
  return new ApiEventRecorder({ send, reporter: reporterOf(nodeName), clock, logger, flushTime: lastEventsTime });
}

/** Without an API server, Events are log lines. */
function manifestEvents(logger: Logger): EventRecorder & AsyncDisposable {
  return { ...logEvents(logger), [Symbol.asyncDispose]: () => Promise.resolve() };
}

/** Reporter of kube-proxy, by which dashboards filter. */
function reporterOf(nodeName: NodeName): EventReporter {
  return { controller: 'kube-proxy', instance: `kube-proxy-${nodeName}` };
}

/** Opens the connection to the API server. Rejects with `ConfigError` if the configuration does not name one. */
async function openConnection(
  config: Exclude<SourceConfig, { readonly kind: 'manifests' }>,
  clock: Clock,
): Promise<ApiServerConnection> {
  const { anonymousConnection, inClusterConnection, kubeconfigConnection } = await import('./api-server-access.ts');
  switch (config.kind) {
    case 'inCluster':
      return inClusterConnection({ env: config.env, clock });
    case 'server':
      return anonymousConnection(config.server);
    case 'kubeconfig': {
      const connection = await kubeconfigConnection(config.file, clock);
      return config.server === undefined ? connection : { ...connection, url: config.server };
    }
  }
}

/** Checks the folder before the start; the source itself would fail only later. */
async function checkFolder(folder: string): Promise<void> {
  try {
    await readdir(folder);
  } catch (cause) {
    const reason = messageOf(cause);
    throw new ConfigError('config.manifests', `--switchyard-manifests: cannot read the folder: ${reason}`, { cause });
  }
}
