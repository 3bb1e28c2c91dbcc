import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import { objectArgument, optional, requireClock, requireFields, requireText } from '../base/argument.ts';
import { ConfigError } from '../base/errors.ts';
import type { Clock } from '../base/time.ts';
import { defaultTls, type ApiServerConnection } from './api-server-connection.ts';
import { readText, tokenFileCredentials } from './credentials.ts';

/** Environment of a pod that connects to its API server. */
export interface InClusterOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** Folder of the mounted service account. Default: the kubelet's. */
  readonly folder?: string;
}

const serviceAccountFolder = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * Returns the connection of a process that runs in a pod: address from KUBERNETES_SERVICE_HOST and _PORT,
 * `ca.crt` and `token` from the mounted service account. The token is read again every 60 s. Rejects
 * with `ConfigError` outside a pod or without the files, with `UsageError` for options of other types.
 */
export async function inClusterConnection(options: InClusterOptions): Promise<ApiServerConnection> {
  const checks = { env: objectArgument, clock: requireClock, folder: optional(requireText) };
  requireFields('inClusterConnection: options', options, checks);
  const { clock, env, folder = serviceAccountFolder } = options;
  const host = env['KUBERNETES_SERVICE_HOST'] ?? '';
  const port = env['KUBERNETES_SERVICE_PORT'] ?? '';
  if (host === '' || !/^\d+$/.test(port)) {
    throw new ConfigError(
      'kubernetes.inCluster',
      'not running in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; give --kubeconfig',
    );
  }
  return {
    url: new URL(`https://${isIPv6(host) ? `[${host}]` : host}:${port}`),
    tls: { ...defaultTls, ca: await readText(join(folder, 'ca.crt'), 'service account CA') },
    credentials: await tokenFileCredentials(join(folder, 'token'), clock),
  };
}
