import { readFile } from 'node:fs/promises';
import { ConfigError, messageOf } from '../base/errors.ts';
import { type Clock, seconds } from '../base/time.ts';
import { addressAndPort } from '../model/ip/port.ts';
import { type Credentials, defaultTls, type ApiServerConnection } from './api-server-connection.ts';
import { join } from 'node:path';
import { objectArgument, optional, requireClock, requireFields, requireText } from '../base/argument.ts';

/** Age at which credentials are read again. The kubelet rotates tokens on disk well over a minute before they expire. */
const rereadAfter = seconds(60);

interface CredentialReader {
  readonly clock: Clock;
  /** Value read at the start, which reveals a wrong set-up early. */
  readonly initial: string | undefined;
  /** Reads the present value of the `Authorization` header. `isRefused`: the server refused the last one. */
  readonly read: (isRefused: boolean) => Promise<string | undefined>;
}

/**
 * Returns credentials that are read again every 60 s, and at once after a 401. While reading fails, the last
 * value stays in use: a token file that is being replaced must not stop the watch.
 */
export function rereadCredentials({ clock, initial, read }: CredentialReader): Credentials {
  let value = initial;
  let readAt: number = clock.monotonic();
  let isRefused = false;
  return {
    async authorization() {
      if (!isRefused && clock.monotonic() - readAt < rereadAfter) return value;
      const wasRefused = isRefused;
      readAt = clock.monotonic();
      isRefused = false;
      try {
        value = await read(wasRefused);
      } catch {
        // if the old value no longer works, the server's answer is the better message
      }
      return value;
    },
    forget() {
      isRefused = true;
    },
  };
}

/** Returns bearer credentials from a token file. Rejects with `ConfigError` if it cannot be read now. */
export async function tokenFileCredentials(path: string, clock: Clock): Promise<Credentials> {
  const read = async (): Promise<string> => {
    const token = (await readText(path, 'token file')).trim();
    if (token === '') throw new ConfigError('kubernetes.token', `token file ${path} is empty`);
    return `Bearer ${token}`;
  };
  return rereadCredentials({ clock, initial: await read(), read });
}

/** Reads a text file that the operator named. Rejects with a `ConfigError` of one line. */
export async function readText(path: string, what: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const reason = errorReason(error).replace(/, \w+( '.*')?$/, ''); // without the system call: the path is named already
    throw new ConfigError('kubernetes.file', `cannot read the ${what} ${path}: ${reason}`, { cause: error });
  }
}

/** Returns the first line of an error's message, without Node's code. */
export function errorReason(error: unknown): string {
  const message = messageOf(error);
  return (message.split('\n')[0] ?? '').replace(/^E[A-Z]+: /, '');
}

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
    url: new URL(`https://${addressAndPort(host, port)}`),
    tls: { ...defaultTls, ca: await readText(join(folder, 'ca.crt'), 'service account CA') },
    credentials: await tokenFileCredentials(join(folder, 'token'), clock),
  };
}
