import type { RequestOptions } from 'node:https';
import { KubeConfig } from '@kubernetes/client-node';

/** Credentials of a user at this moment. */
export interface GivenCredentials {
  /** Value of the `Authorization` header. */
  readonly authorization?: string | undefined;
  /** PEM of a client certificate, and of its key. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

/** `exec` and `auth-provider` of a kubeconfig user, as in the file. */
export interface PluginFields {
  readonly exec: unknown;
  readonly authProvider: unknown;
}

/**
 * Returns a function that runs the exec plug-in or auth provider of a user. The library caches credentials until they expire.
 * The function rejects with the library's error.
 *
 * This module loads the Kubernetes client library (20 MB of memory): import it dynamically.
 */
export function credentialPlugin({ exec, authProvider }: PluginFields): () => Promise<GivenCredentials> {
  const config = new KubeConfig();
  // Plug-ins get no information about the cluster: it is a placeholder.
  config.loadFromClusterAndUser(
    { name: 'cluster', server: 'https://cluster', skipTLSVerify: false },
    { name: 'user', exec, authProvider },
  );
  return async () => {
    const options: RequestOptions = {};
    await config.applyToHTTPSOptions(options);
    const header = (options.headers as Readonly<Record<string, unknown>> | undefined)?.['Authorization'];
    return {
      authorization: typeof header === 'string' ? header.trim() : undefined,
      cert: options.cert?.toString(),
      key: options.key?.toString(),
    };
  };
}
