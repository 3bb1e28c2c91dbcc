import { type HostError, messageOf } from '@switchyard/core';

/** Fetches an answer of any status. Rejects with the result of `unreachable`, which gets the reason, and with the reason of the signal. */
export async function reach(
  url: string,
  { method = 'GET', signal }: { readonly method?: string; readonly signal: AbortSignal },
  unreachable: (why: string) => HostError,
): Promise<Response> {
  try {
    return await fetch(url, { method, signal });
  } catch (error) {
    signal.throwIfAborted();
    throw unreachable(messageOf(error instanceof Error && error.cause !== undefined ? error.cause : error));
  }
}
