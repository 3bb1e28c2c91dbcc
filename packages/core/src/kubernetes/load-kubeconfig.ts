import { optional, requireClock, requireText } from '../base/argument.ts';
import type { Clock } from '../base/time.ts';
import type { ApiServerConnection } from './api-server-connection.ts';

/**
 * Returns the connection of a kubeconfig file's current context, or of the named one. Loads the Kubernetes client library
 * (20 MB of memory, 0.2 s) only for users with an exec plug-in or an auth provider. Rejects with `ConfigError`, and with
 * `UsageError` for arguments of other types.
 */
export async function kubeconfigConnection(path: string, clock: Clock, context?: string): Promise<ApiServerConnection> {
  requireText('kubeconfigConnection: path', path);
  requireClock('kubeconfigConnection: clock', clock);
  optional(requireText)('kubeconfigConnection: context', context);
  const kubeconfig = await import('./kubeconfig.ts');
  return kubeconfig.kubeconfigConnection(path, clock, context);
}

/**
 * Returns the connection of a kubeconfig's text, without exec plug-ins and auth providers. `name` identifies it in messages,
 * such as `of cluster kind`. Rejects with `ConfigError`, and with `UsageError` for arguments of other types.
 */
export async function kubeconfigTextConnection(text: string, name: string, clock: Clock): Promise<ApiServerConnection> {
  requireText('kubeconfigTextConnection: text', text);
  requireText('kubeconfigTextConnection: name', name);
  requireClock('kubeconfigTextConnection: clock', clock);
  const kubeconfig = await import('./kubeconfig.ts');
  return kubeconfig.kubeconfigTextConnection(text, name, clock);
}
