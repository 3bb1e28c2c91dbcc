import type { Clock } from '../time.ts';
import type { ApiServerConnection } from './api-server-connection.ts';

/**
 * The connection of a kubeconfig file's current context. The Kubernetes client library (20 MB of memory, 0.2 s) is
 * loaded only for users that it has to ask an exec plug-in or an auth provider for. Rejects with `ConfigError`.
 */
export async function kubeconfigConnection(path: string, clock: Clock): Promise<ApiServerConnection> {
  const { plainKubeconfigConnection } = await import('./plain-kubeconfig.ts');
  const plain = await plainKubeconfigConnection(path, clock);
  if (plain !== undefined) return plain;
  const { connectionFromKubeconfig } = await import('./kubeconfig.ts');
  return connectionFromKubeconfig(path, clock);
}
