import type { Clock } from '../base/time.ts';
import type { ApiServerConnection } from './api-server-connection.ts';

/**
 * The connection of a kubeconfig file's current context, or of the one that is named. The Kubernetes client library (20 MB of memory, 0.2 s) is
 * loaded only for users that it has to ask an exec plug-in or an auth provider for. Rejects with `ConfigError`.
 */
export async function kubeconfigConnection(path: string, clock: Clock, context?: string): Promise<ApiServerConnection> {
  const kubeconfig = await import('./kubeconfig.ts');
  return kubeconfig.kubeconfigConnection(path, clock, context);
}

/**
 * The connection of a kubeconfig's text, as `kubeconfigConnection`: no exec plug-in, no auth provider. `name` says in messages
 * what it is of, such as `of cluster kind`. Rejects with `ConfigError`.
 */
export async function kubeconfigTextConnection(text: string, name: string, clock: Clock): Promise<ApiServerConnection> {
  const kubeconfig = await import('./kubeconfig.ts');
  return kubeconfig.kubeconfigTextConnection(text, name, clock);
}
