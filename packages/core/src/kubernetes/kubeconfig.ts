import { dirname, resolve } from 'node:path';
import type { RequestOptions } from 'node:https';
import { KubeConfig, type Cluster, type User } from '@kubernetes/client-node';
import { ConfigError } from '../base/errors.ts';
import { parseYaml } from '../manifests/parse-yaml.ts';
import type { Clock } from '../base/time.ts';
import type { ApiServerConnection, Credentials, TlsSettings } from './api-server-connection.ts';
import { missingContext } from './plain-kubeconfig.ts';
import { errorReason, readText, rereadCredentials, tokenFileCredentials } from './credentials.ts';

/**
 * The connection of a kubeconfig file's current context, or of the one that is named: CA, client certificate, token, `tokenFile`,
 * user name and password, exec plug-ins. Files it names are relative to it. Rejects with `ConfigError`,
 * one line, for whatever is wrong with it; `proxy-url` and impersonation are refused, not ignored.
 *
 * This module loads the Kubernetes client library (20 MB of memory): import it dynamically.
 */
export async function connectionFromKubeconfig(
  path: string,
  clock: Clock,
  name?: string,
): Promise<ApiServerConnection> {
  const context = await readContext(path, name);
  const url = serverUrl(path, context.cluster);
  const options = await requestOptions(path, context);
  return {
    url,
    tls: tlsSettings(options, context.cluster),
    credentials: await credentialsOf(path, context, { clock, initial: authorizationOf(options), name }),
  };
}

/** One cluster and one user, in a config of their own. */
interface KubeContext {
  readonly config: KubeConfig;
  readonly cluster: Cluster;
  readonly user: User;
  /** Absolute; the library does not know this field, but kubeadm writes it for kube-proxy. */
  readonly tokenFile: string | undefined;
}

async function readContext(path: string, wanted: string | undefined): Promise<KubeContext> {
  const text = await readText(path, 'kubeconfig');
  const config = new KubeConfig();
  const raw = parseConfig(path, text, config);
  const current = wanted ?? config.getCurrentContext() ?? '';
  if (current === '') throw broken(path, 'it has no current-context');
  const context = config.getContextObject(current);
  if (context === null) throw broken(path, missingContext(current, wanted));
  const cluster = config.getCluster(context.cluster);
  if (cluster === null)
    throw broken(
      path,
      `context ${current} names the cluster ${JSON.stringify(context.cluster)}, which it does not have`,
    );
  const hasUser = (context.user ?? '') !== '';
  const user = hasUser ? config.getUser(context.user) : { name: 'nobody' };
  if (user === null)
    throw broken(path, `context ${current} names the user ${JSON.stringify(context.user)}, which it does not have`);
  if ((cluster.proxyUrl ?? '') !== '')
    throw broken(path, 'proxy-url is not supported; remove it or use a direct address');
  if ((user.impersonateUser ?? '') !== '')
    throw broken(path, `user ${user.name}: impersonation ("as") is not supported`);
  config.makePathsAbsolute(dirname(path));
  // The library refuses http: unless told to skip verification, of which there is none to skip.
  const reachable = cluster.server.startsWith('http:') ? { ...cluster, skipTLSVerify: true } : cluster;
  config.loadFromClusterAndUser(reachable, user);
  return { config, cluster, user, tokenFile: tokenFileOf(path, raw, user.name) };
}

function parseConfig(path: string, text: string, config: KubeConfig): unknown {
  const [document, ...others] = parseYaml(text);
  const error = document?.errors[0];
  if (error !== undefined) throw broken(path, `line ${error.line}, column ${error.column}: ${error.message}`);
  const raw = document?.value;
  if (others.length > 0 || typeof raw !== 'object' || raw === null || Array.isArray(raw))
    throw broken(path, 'it is not one YAML object');
  try {
    config.loadFromString(text);
  } catch (cause) {
    throw broken(path, errorReason(cause), cause);
  }
  return raw;
}

function tokenFileOf(path: string, raw: unknown, user: string): string | undefined {
  const { users } = raw as { readonly users?: unknown }; // readContext has found it to be an object
  if (!Array.isArray(users)) return undefined;
  const entry = (users as readonly { name?: unknown; user?: { tokenFile?: unknown } }[]).find(
    ({ name }) => name === user,
  );
  const tokenFile = entry?.user?.tokenFile;
  return typeof tokenFile === 'string' && tokenFile !== '' ? resolve(dirname(path), tokenFile) : undefined;
}

function serverUrl(path: string, cluster: Cluster): URL {
  const url = URL.parse(cluster.server);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw broken(path, `cluster ${cluster.name}: server ${JSON.stringify(cluster.server)} is not an http or https URL`);
  }
  return url;
}

/** Reads certificate files and asks exec plug-ins. */
async function requestOptions(path: string, { config }: KubeContext): Promise<RequestOptions> {
  const options: RequestOptions = {};
  try {
    await config.applyToHTTPSOptions(options);
  } catch (cause) {
    throw broken(path, errorReason(cause), cause);
  }
  return options;
}

function tlsSettings(options: RequestOptions, cluster: Cluster): TlsSettings {
  return {
    ca: options.ca?.toString(),
    cert: options.cert?.toString(),
    key: options.key?.toString(),
    serverName: options.servername,
    insecureSkipVerify: cluster.skipTLSVerify === true,
  };
}

function authorizationOf({ auth, headers }: RequestOptions): string | undefined {
  if (typeof auth === 'string') return `Basic ${Buffer.from(auth).toString('base64')}`;
  const value = (headers as Readonly<Record<string, unknown>> | undefined)?.['Authorization'];
  return typeof value === 'string' ? value.trim() : undefined;
}

interface CredentialStart {
  readonly clock: Clock;
  readonly initial: string | undefined;
  /** Of the context; undefined: the current one. */
  readonly name: string | undefined;
}

/** A token in the file may be replaced while we run; an exec plug-in's is renewed by the library when it expires. */
function credentialsOf(
  path: string,
  context: KubeContext,
  { clock, initial, name }: CredentialStart,
): Promise<Credentials> {
  if (initial === undefined && context.tokenFile !== undefined) return tokenFileCredentials(context.tokenFile, clock);
  const isRenewedByLibrary = (context.user.exec ?? context.user.authProvider ?? undefined) !== undefined;
  let latest = context;
  const read = async (isRefused: boolean): Promise<string | undefined> => {
    if (isRefused || !isRenewedByLibrary) latest = await readContext(path, name);
    return authorizationOf(await requestOptions(path, latest));
  };
  return Promise.resolve(rereadCredentials({ clock, initial, read }));
}

function broken(path: string, what: string, cause?: unknown): ConfigError {
  return new ConfigError('kubernetes.kubeconfig', `kubeconfig ${path}: ${what}`, { cause });
}
