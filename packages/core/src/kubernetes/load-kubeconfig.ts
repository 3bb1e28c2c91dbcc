import type { Clock } from '../base/time.ts';
import type { ApiServerConnection } from './api-server-connection.ts';

/**
 * The connection of a kubeconfig file's current context, or of the one that is named. The Kubernetes client library (20 MB of memory, 0.2 s) is
 * loaded only for users that it has to ask an exec plug-in or an auth provider for. Rejects with `ConfigError`.
 */
export async function kubeconfigConnection(path: string, clock: Clock, context?: string): Promise<ApiServerConnection> {
  const { plainKubeconfigConnection } = await import('./plain-kubeconfig.ts');
  const plain = await plainKubeconfigConnection(path, clock, context);
  if (plain !== undefined) return plain;
  const { connectionFromKubeconfig } = await import('./kubeconfig.ts');
  return connectionFromKubeconfig(path, clock, context);
}

/**
 * The connection of a kubeconfig's text, as `plainKubeconfigConnection`: no exec plug-in, no auth provider. `name` says in messages
 * what it is of, such as `of cluster kind`. Rejects with `ConfigError`.
 */
export async function kubeconfigTextConnection(text: string, name: string, clock: Clock): Promise<ApiServerConnection> {
  const plain = await import('./plain-kubeconfig.ts');
  return plain.kubeconfigTextConnection(text, name, clock);
}
