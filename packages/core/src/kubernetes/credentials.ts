import { readFile } from 'node:fs/promises';
import { ConfigError, messageOf } from '../base/errors.ts';
import { type Clock, seconds } from '../base/time.ts';
import type { Credentials } from './api-server-connection.ts';

/** Age at which credentials are read again. The kubelet rotates tokens on disk well over a minute before they expire. */
const rereadAfter = seconds(60);

/** Source of renewed credentials. */
export interface CredentialReader {
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
