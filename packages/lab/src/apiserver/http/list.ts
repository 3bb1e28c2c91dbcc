import { messageOf, millis } from '@switchyard/core';
import type { ResourceDefinition } from '../resource.ts';
import { badRequest, expired, StatusError } from '../status-error.ts';
import type { Snapshot, Store } from '../store/store.ts';
import type { ServerContext } from './context.ts';
import type { ListOptions } from './list-options.ts';
import { type ListMeta, renderList, type RenderOptions } from './representation.ts';

/** Maximum wait of a list for a future version. */
const futureVersionWait = millis(3_000);

interface ListRequest {
  readonly resource: ResourceDefinition;
  readonly options: ListOptions;
  readonly render: RenderOptions;
}

/** The body of a list. */
export async function listObjects(context: ServerContext, request: ListRequest, signal: AbortSignal): Promise<string> {
  const { resource, options, render } = request;
  await waitForVersion(context, options, signal);
  const start = options.continueToken === '' ? undefined : decodeContinue(options.continueToken);
  const snapshot = snapshotFor(context.store, resource, options, start);
  const first = start === undefined ? 0 : firstAfter(snapshot, start.key);
  const isLimited = options.limit !== undefined && options.resourceVersion !== '0';
  const matching = snapshot.items.slice(first).filter(options.matches);
  const items = isLimited ? matching.slice(0, options.limit) : matching;
  const last = items.at(-1);
  const hasMore = matching.length > items.length && last !== undefined;
  const meta: ListMeta = {
    resourceVersion: String(snapshot.resourceVersion),
    ...(hasMore ? { continue: encodeContinue(snapshot.resourceVersion, `${last.key}\0`) } : {}),
    ...(hasMore && !options.hasSelector ? { remainingItemCount: matching.length - items.length } : {}),
  };
  return renderList(resource, items, meta, render);
}

async function waitForVersion(
  { store, clock }: ServerContext,
  options: ListOptions,
  signal: AbortSignal,
): Promise<void> {
  const wanted = Number(options.resourceVersion || 0);
  const deadline = clock.monotonic() + futureVersionWait;
  while (wanted > store.resourceVersion && clock.monotonic() < deadline) await clock.sleep(millis(50), signal);
  if (wanted <= store.resourceVersion) return;
  throw new StatusError({
    code: 504,
    reason: 'Timeout',
    message: `Timeout: Too large resource version: ${wanted}, current: ${store.resourceVersion}`,
    details: {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
      retryAfterSeconds: 1,
    },
    retryAfterSeconds: 1,
  });
}

interface ContinueStart {
  /** -1 continues at the newest version, after the consistent one has expired. */
  readonly version: number;
  readonly key: string;
}

function snapshotFor(
  store: Store,
  resource: ResourceDefinition,
  options: ListOptions,
  start: ContinueStart | undefined,
): Snapshot {
  if (start !== undefined && start.version !== -1) {
    const snapshot = store.listAt(resource, start.version);
    if (snapshot !== undefined) return snapshot;
    throw expired(
      'The provided continue parameter is too old to display a consistent list result. You can start a new list without ' +
        'the continue parameter, or use the continue token in this response to retrieve the remainder of the results. ' +
        'Continuing with the provided token results in an inconsistent list - objects that were created, modified, or ' +
        'deleted between the time the first chunk was returned and now may show up in the list.',
      encodeContinue(-1, start.key.slice(1)),
    );
  }
  if (options.resourceVersionMatch !== 'Exact') return store.list(resource);
  const snapshot = store.listAt(resource, Number(options.resourceVersion));
  if (snapshot === undefined) throw expired('The resourceVersion for the provided list is too old.');
  return snapshot;
}

/** Index of the first item whose key is not before `key`. */
function firstAfter(snapshot: Snapshot, key: string): number {
  const index = snapshot.items.findIndex((item) => item.key >= key);
  return index === -1 ? snapshot.items.length : index;
}

function encodeContinue(version: number, start: string): string {
  return Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv: version, start })).toString('base64url');
}

function decodeContinue(token: string): ContinueStart {
  try {
    const { v, rv, start } = JSON.parse(Buffer.from(token, 'base64url').toString('utf8')) as Record<string, unknown>;
    if (v !== 'meta.k8s.io/v1' || typeof rv !== 'number' || typeof start !== 'string') throw new Error('wrong fields');
    return { version: rv, key: start.startsWith('/') ? start : `/${start}` };
  } catch (cause) {
    const detail = messageOf(cause);
    throw badRequest(`invalid continue token: continue key is not valid: ${detail}`);
  }
}
