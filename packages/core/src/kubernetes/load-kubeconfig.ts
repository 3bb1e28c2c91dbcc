import type { Clock } from '../time.ts';
import type { ApiServerConnection } from './api-server-connection.ts';

/** `connectionFromKubeconfig`, loaded with its library only when it is needed. */
export async function kubeconfigConnection(path: string, clock: Clock): Promise<ApiServerConnection> {
  const { connectionFromKubeconfig } = await import('./kubeconfig.ts');
  return connectionFromKubeconfig(path, clock);
}
