import { dirname, resolve } from 'node:path';
import { ConfigError } from '../base/errors.ts';
import { optional, requireClock, requireText } from '../base/argument.ts';
import type { Clock } from '../base/time.ts';
import type { ApiServerConnection, Credentials } from './api-server-connection.ts';
import type { credentialPlugin, GivenCredentials } from './credential-plugin.ts';
import { errorReason, readText, rereadCredentials, tokenFileCredentials } from './credentials.ts';

/**
 * Returns the connection of a kubeconfig file's current context, or of the named one: CA, client certificate, token,
 * `tokenFile`, user name and password, exec plug-in, auth provider. Files it names are relative to it. Data in it wins over a
 * file, as for kubectl. Rejects with a `ConfigError` of one line for any error in it; `proxy-url` and impersonation are
 * refused, not ignored. Loads the Kubernetes client library (20 MB of memory, 0.2 s) only for a plug-in or provider. Rejects with
 * `UsageError` for arguments of other types.
 */
export async function kubeconfigConnection(path: string, clock: Clock, context?: string): Promise<ApiServerConnection> {
  requireText('kubeconfigConnection: path', path);
  requireClock('kubeconfigConnection: clock', clock);
  optional(requireText)('kubeconfigConnection: context', context);
  return connectionOf({ path, read: () => readText(path, 'kubeconfig'), context, canRunPlugins: true }, clock);
}

/**
 * The same for the text of a kubeconfig. `name` identifies it in messages, such as `of cluster kind`.
 * Rejects with `ConfigError` where the user has an exec plug-in or an auth provider, with `UsageError` for arguments of other types.
 */
export async function kubeconfigTextConnection(text: string, name: string, clock: Clock): Promise<ApiServerConnection> {
  requireText('kubeconfigTextConnection: text', text);
  requireText('kubeconfigTextConnection: name', name);
  requireClock('kubeconfigTextConnection: clock', clock);
  const read = (): Promise<string> => Promise.resolve(text);
  return connectionOf({ path: name, read, context: undefined, canRunPlugins: false }, clock);
}

interface KubeconfigPlace {
  /** Identifies it in messages; files in it are relative to it. */
  readonly path: string;
  readonly read: () => Promise<string>;
  /** Name of the context; undefined: the current one. */
  readonly context: string | undefined;
  readonly canRunPlugins: boolean;
}

async function connectionOf(place: KubeconfigPlace, clock: Clock): Promise<ApiServerConnection> {
  const { path } = place;
  const context = await readContext(place);
  const { cluster, user } = context;
  const ask = await credentialSource(place, user);
  const url = serverUrl(path, context);
  const given = await ask();
  return {
    url,
    tls: {
      ca: await pem(path, cluster, 'certificate-authority'),
      cert: given.cert ?? (await pem(path, user, 'client-certificate')),
      key: given.key ?? (await pem(path, user, 'client-key')),
      serverName: text(cluster, 'tls-server-name'),
      insecureSkipVerify: cluster['insecure-skip-tls-verify'] === true,
    },
    credentials: await credentialsOf(place, user, { ask, initial: given.authorization, clock }),
  };
}

/** Returns a function that reads a user's credentials. Only a plug-in's change while the file stays the same. */
async function credentialSource(
  { path, canRunPlugins }: KubeconfigPlace,
  user: Fields,
): Promise<() => Promise<GivenCredentials>> {
  const authorization = authorizationOf(user);
  const { exec, 'auth-provider': authProvider } = user;
  if (exec === undefined && authProvider === undefined) return () => Promise.resolve({ authorization });
  if (!canRunPlugins) throw broken(path, 'its user needs a program to be run for credentials');
  const newPlugin = await loadCredentialPlugin(path);
  const plugin = newPlugin({ exec, authProvider });
  return async () => {
    try {
      const given = await plugin();
      return { ...given, authorization: authorization ?? given.authorization };
    } catch (cause) {
      throw broken(path, errorReason(cause), cause);
    }
  };
}

/** Only plug-ins need the Kubernetes client library, so it is an optional peer dependency of this package. */
async function loadCredentialPlugin(path: string): Promise<typeof credentialPlugin> {
  try {
    return (await import('./credential-plugin.ts')).credentialPlugin;
  } catch (cause) {
    const library = '@kubernetes/client-node';
    const isMissing = cause instanceof Error && 'code' in cause && cause.code === 'ERR_MODULE_NOT_FOUND';
    if (!isMissing || !cause.message.includes(library)) throw cause;
    throw broken(path, `its user has an exec plug-in or an auth provider; run: npm install ${library}`, cause);
  }
}

/** Fields of one object in the file. Null and empty texts are left out. */
type Fields = Readonly<Record<string, unknown>>;

interface KubeContext {
  readonly clusterName: string;
  readonly cluster: Fields;
  readonly user: Fields;
}

async function readContext({ path, read, context: wanted }: KubeconfigPlace): Promise<KubeContext> {
  const config = await parseConfig(path, await read());
  const current = wanted ?? text(config, 'current-context');
  if (current === undefined) throw broken(path, 'it has no current-context');
  const context = entry({ path, config, list: 'contexts', part: 'context' }, current);
  if (context === undefined) {
    // The caller chose a named context, the file its current one.
    const which = wanted === undefined ? 'its current-context' : 'the context';
    throw broken(path, `${which} ${JSON.stringify(current)} is not among its contexts`);
  }
  const clusterName = text(context, 'cluster') ?? '';
  const named = (kind: string, name: string): string =>
    `context ${current} names the ${kind} ${JSON.stringify(name)}, which it does not have`;
  const cluster = entry({ path, config, list: 'clusters', part: 'cluster', needs: 'server' }, clusterName);
  if (cluster === undefined) throw broken(path, named('cluster', clusterName));
  const userName = text(context, 'user');
  const user = userName === undefined ? {} : entry({ path, config, list: 'users', part: 'user' }, userName);
  if (user === undefined) throw broken(path, named('user', userName ?? ''));
  if (cluster['proxy-url'] !== undefined) {
    throw broken(path, 'proxy-url is not supported; remove it or use a direct address');
  }
  if (user['as'] !== undefined) throw broken(path, `user ${userName}: impersonation ("as") is not supported`);
  return { clusterName, cluster, user };
}

async function parseConfig(path: string, content: string): Promise<Fields> {
  const { parseYaml } = await import('../manifests/parse-yaml.ts'); // costs memory that a pod does not need
  const [document, ...others] = parseYaml(content);
  const error = document?.errors[0];
  if (error !== undefined) throw broken(path, `line ${error.line}, column ${error.column}: ${error.message}`);
  const raw = document?.value;
  if (others.length > 0 || typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    throw broken(path, 'it is not one YAML object');
  }
  return fields(raw);
}

interface EntryPlace {
  readonly path: string;
  readonly config: Fields;
  readonly list: string;
  /** The field of an entry that holds its contents. */
  readonly part: string;
  /** Field that the contents must have. */
  readonly needs?: string;
}

/** Returns the contents of the first entry of a list that has this name. */
function entry({ path, config, list, part, needs }: EntryPlace, name: string): Fields | undefined {
  const all = Array.isArray(config[list]) ? (config[list] as readonly unknown[]).map(fields) : [];
  const index = all.findIndex((one) => text(one, 'name') === name);
  if (index < 0) return undefined;
  const found = fields(all[index]?.[part]);
  if (needs !== undefined && text(found, needs) === undefined) {
    throw broken(path, `${list}[${index}].${part}.${needs} is missing`);
  }
  return found;
}

function fields(value: unknown): Fields {
  if (typeof value !== 'object' || value === null) return {};
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== null && one !== ''));
}

function text(object: Fields, name: string): string | undefined {
  const value = object[name];
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}

function serverUrl(path: string, { clusterName, cluster }: KubeContext): URL {
  const server = text(cluster, 'server') ?? '';
  const url = URL.parse(server);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw broken(path, `cluster ${clusterName}: server ${JSON.stringify(server)} is not an http or https URL`);
  }
  return url;
}

/** Returns `NAME-data`, decoded from base64, or the contents of the file `NAME`. */
async function pem(path: string, object: Fields, name: string): Promise<string | undefined> {
  const data = text(object, `${name}-data`);
  if (data !== undefined) return Buffer.from(data, 'base64').toString('utf8');
  const file = text(object, name);
  return file === undefined ? undefined : readText(resolve(dirname(path), file), name.replace('-', ' '));
}

/** Returns credentials that follow the file: its token may be replaced while the process runs. */
function credentialsOf(
  place: KubeconfigPlace,
  user: Fields,
  { ask, initial, clock }: { ask: () => Promise<GivenCredentials>; initial: string | undefined; clock: Clock },
): Promise<Credentials> {
  const tokenFile = text(user, 'tokenFile');
  if (initial === undefined && tokenFile !== undefined) {
    return tokenFileCredentials(resolve(dirname(place.path), tokenFile), clock);
  }
  let latest = ask;
  const read = async (isRefused: boolean): Promise<string | undefined> => {
    if (isRefused) latest = await credentialSource(place, (await readContext(place)).user);
    return (await latest()).authorization;
  };
  return Promise.resolve(rereadCredentials({ clock, initial, read }));
}

function authorizationOf(user: Fields): string | undefined {
  const token = text(user, 'token');
  if (token !== undefined) return `Bearer ${token}`;
  const name = text(user, 'username');
  if (name === undefined) return undefined;
  return `Basic ${Buffer.from(`${name}:${text(user, 'password') ?? ''}`).toString('base64')}`;
}

function broken(path: string, what: string, cause?: unknown): ConfigError {
  return new ConfigError('kubernetes.kubeconfig', `kubeconfig ${path}: ${what}`, { cause });
}
