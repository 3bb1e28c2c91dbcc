import { newBackOff } from '../../base/back-off.ts';
import { ApiServerError } from '../../base/errors.ts';
import { type Clock, millis } from '../../base/time.ts';
import type { ApiClient } from '../api-client.ts';
import { isExpired } from '../api-failure.ts';
import { defaultTimings } from '../reflector-timings.ts';
import { parseWatchLine, splitLines } from '../api-client.ts';

/** A full list, and the version from which a watch continues it. */
export interface ApiList<T> {
  readonly items: readonly T[];
  readonly resourceVersion: string;
}

/**
 * One event of a watch. `listed` is the whole state: it comes first, and again whenever the server no longer knows the
 * version to resume from; the receiver then replaces all objects it holds.
 */
export type ObjectEvent<T> =
  | { readonly kind: 'listed'; readonly items: readonly T[]; readonly resourceVersion: string }
  | { readonly kind: 'changed' | 'deleted'; readonly object: T };

interface FollowOptions<T> {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly list: () => Promise<ApiList<T>>;
  readonly signal: AbortSignal;
}

const pauses = { first: millis(50), max: millis(2_000) };

/** Lists, then watches, and repeats both as needed until `signal` aborts; then it ends. */
export async function* followObjects<T>(options: FollowOptions<T>): AsyncGenerator<ObjectEvent<T>> {
  const { client, clock, path, signal } = options;
  const backOff = newBackOff(pauses, () => 1);
  let version: string | undefined;
  while (!signal.aborted) {
    try {
      if (version === undefined) {
        const list = await options.list();
        version = list.resourceVersion;
        yield { kind: 'listed', ...list };
      }
      const query = new URLSearchParams(options.query);
      const parameters = {
        watch: 'true',
        allowWatchBookmarks: 'true',
        resourceVersion: version,
        timeoutSeconds: '300',
      };
      for (const [name, value] of Object.entries(parameters)) query.set(name, value);
      await using body = await client.open({ path, query }, signal);
      body.setInactivity(defaultTimings.inactivity);
      for await (const lines of splitLines(body.chunks(), body.request)) {
        for (const line of lines) {
          const event = parseWatchLine(line, body.request);
          if (event.kind === 'error') throw event.error;
          backOff.reset();
          version = event.kind === 'bookmark' ? event.resourceVersion : event.object.metadata?.resourceVersion;
          if (event.kind !== 'bookmark') yield { kind: event.kind, object: event.object as T };
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof ApiServerError)) throw error;
      if (isExpired(error)) version = undefined;
    }
    // Also after a clean end: otherwise a server that ends every watch at once causes a tight loop.
    await clock.sleep(backOff.next(), signal).catch(() => undefined);
  }
}
