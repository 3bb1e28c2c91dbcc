import { ApiServerError, millis, systemClock } from '@switchyard/core';
import type { ApiList, WatchEvent } from '../api-client.ts';
import type { ApiTransport } from './transport.ts';

interface FollowOptions<T> {
  readonly transport: ApiTransport;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly list: (signal: AbortSignal) => Promise<ApiList<T>>;
  readonly signal: AbortSignal;
}

interface WireEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: { readonly metadata?: { readonly resourceVersion?: string }; readonly code?: number };
}

const kinds = { ADDED: 'added', MODIFIED: 'modified', DELETED: 'deleted' } as const;
const shortestPause = millis(50);
const longestPause = millis(2_000);

/** Lists, then watches, and repeats what has to be repeated until `signal` aborts; then it ends. */
export async function* followResource<T>(options: FollowOptions<T>): AsyncGenerator<WatchEvent<T>> {
  let version: string | undefined;
  let pause: number = shortestPause;
  while (!options.signal.aborted) {
    try {
      if (version === undefined) {
        const list = await options.list(options.signal);
        version = list.resourceVersion;
        yield { kind: 'listed', ...list };
      }
      for await (const event of watchFrom(options, version)) {
        version = event.object.metadata?.resourceVersion ?? version;
        pause = shortestPause;
        if (event.type !== 'BOOKMARK' && event.type !== 'ERROR') {
          yield { kind: kinds[event.type], object: event.object as T };
        }
      }
    } catch (error) {
      if (options.signal.aborted) return;
      if (!(error instanceof ApiServerError)) throw error;
      if (error.status === 410) version = undefined;
    }
    // Also after a clean end: a server that ends every stream at once must not be asked in a tight loop.
    await systemClock.sleep(millis(pause), options.signal).catch(() => undefined);
    pause = Math.min(pause * 2, longestPause);
  }
}

async function* watchFrom<T>(options: FollowOptions<T>, version: string): AsyncGenerator<WireEvent> {
  const query = new URLSearchParams(options.query);
  query.set('watch', 'true');
  query.set('allowWatchBookmarks', 'true');
  query.set('resourceVersion', version);
  query.set('timeoutSeconds', '300');
  const lines = options.transport.lines(`${options.path}?${query.toString()}`, options.signal);
  for await (const line of lines) {
    const event = line as WireEvent;
    if (event.type === 'ERROR') {
      throw new ApiServerError('api.watch-ended', `the watch of ${options.path} from ${version} ended with an error`, {
        isRetryable: true,
        status: event.object.code,
      });
    }
    yield event;
  }
}
