import { readdir } from 'node:fs/promises';
import {
  type Clock,
  type ClusterStateSource,
  ConfigError,
  type Logger,
  type NodeName,
  type Random,
} from '@switchyard/core';
import type { ApiServerConnection } from '@switchyard/core/kubernetes';
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
    await checkFolder(config.folder);
    const { ManifestSource } = await import('@switchyard/core/manifests');
    return new ManifestSource({ folder: config.folder, clock, log });
  }
  const { KubernetesSource } = await import('@switchyard/core/kubernetes');
  const connection = await openConnection(config, clock);
  const userAgent = `switchyard-agent/${version}`;
  return new KubernetesSource({ connection, nodes: { kind: 'one', name: nodeName }, clock, random, log, userAgent });
}

/** How to reach the API server. Rejects with `ConfigError` when it cannot be told. */
export async function openConnection(
  config: Exclude<SourceConfig, { readonly kind: 'manifests' }>,
  clock: Clock,
): Promise<ApiServerConnection> {
  const { anonymousConnection, inClusterConnection, kubeconfigConnection } =
    await import('@switchyard/core/kubernetes');
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

/** The source itself would complain only after the start. */
async function checkFolder(folder: string): Promise<void> {
  try {
    await readdir(folder);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ConfigError('config.manifests', `--switchyard-manifests: cannot read the folder: ${reason}`, { cause });
  }
}
