import {
  type Clock,
  type ClusterStateSource,
  ConfigError,
  type Logger,
  type NodeName,
  type Random,
} from '@switchyard/core';
import type { SourceConfig } from './config.ts';
import { version } from './version.ts';

/** What a source may need of this process. */
export interface SourceNeeds {
  readonly nodeName: NodeName;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** The source the flags ask for. Rejects with `ConfigError` when it cannot be used at all. */
export async function openSource(config: SourceConfig, needs: SourceNeeds): Promise<ClusterStateSource> {
  const { nodeName, clock, random, logger: log } = needs;
  if (config.kind === 'manifests') {
    throw new ConfigError('source.manifests', `--manifests ${config.folder}: not available yet`);
  }
  const { KubernetesSource, inClusterConnection, kubeconfigConnection } = await import('@switchyard/core/kubernetes');
  const connection =
    config.kind === 'inCluster'
      ? await inClusterConnection({ env: config.env, clock })
      : await kubeconfigConnection(config.file, clock);
  const userAgent = `switchyard-agent/${version}`;
  return new KubernetesSource({ connection, nodes: { kind: 'one', name: nodeName }, clock, random, log, userAgent });
}
