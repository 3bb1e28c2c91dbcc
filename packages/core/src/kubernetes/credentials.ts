import { readFile } from 'node:fs/promises';
import { ConfigError, messageOf } from '../base/errors.ts';
import { type Clock, seconds } from '../base/time.ts';
import type { Credentials } from './api-server-connection.ts';

/** Bound tokens are rotated on disk well before they expire; the API server allows for more than a minute. */
const rereadAfter = seconds(60);

/** Where renewed credentials come from. */
export interface CredentialReader {
  readonly clock: Clock;
  /** The value read at start, so that a wrong set-up is found then. */
  readonly initial: string | undefined;
  /** The `Authorization` header's value now. `isRefused`: the server did not accept the last one. */
  readonly read: (isRefused: boolean) => Promise<string | undefined>;
}

/**
 * Credentials that are read again every 60 s, and at once after a 401. While reading fails, the last
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
        // the server's answer to the old value, if any, is the better message
      }
      return value;
    },
    forget() {
      isRefused = true;
    },
  };
}

/** Bearer credentials from a token file. Rejects with `ConfigError` if it cannot be read now. */
export async function tokenFileCredentials(path: string, clock: Clock): Promise<Credentials> {
  const read = async (): Promise<string> => {
    const token = (await readText(path, 'token file')).trim();
    if (token === '') throw new ConfigError('kubernetes.token', `token file ${path} is empty`);
    return `Bearer ${token}`;
  };
  return rereadCredentials({ clock, initial: await read(), read });
}

/** A text file the operator named. Rejects with `ConfigError`: one line that says what, where and why. */
export async function readText(path: string, what: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const reason = errorReason(error).replace(/, \w+( '.*')?$/, ''); // without the system call: the path is named already
    throw new ConfigError('kubernetes.file', `cannot read the ${what} ${path}: ${reason}`, { cause: error });
  }
}

/** The first line of an error's message, without Node's code. */
export function errorReason(error: unknown): string {
  const message = messageOf(error);
  return (message.split('\n')[0] ?? '').replace(/^E[A-Z]+: /, '');
}
