import { messageOf, millis } from '@switchyard/core';
import type { ResourceDefinition } from '../resource.ts';
import {
  badRequest,
  expired,
  type FieldError,
  forbiddenField,
  internalError,
  invalidListOptions,
  StatusError,
  unsupportedField,
} from '../status-error.ts';
import type { Snapshot, Store, StoredObject } from '../store.ts';
import type { RequestInfo, ServerContext } from './handler.ts';
import { type ListMeta, renderList, type RenderOptions } from './representation.ts';
import { nameOfFieldSelector, parseFieldSelector, parseLabelSelector } from '../selectors.ts';

/** Maximum wait of a list for a future version. */
const futureVersionWait = millis(3_000);

interface ListRequest {
  readonly resource: ResourceDefinition;
  readonly options: ListOptions;
  readonly render: RenderOptions;
}

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

/** The query of a list or watch, checked. */
export interface ListOptions {
  readonly isWatch: boolean;
  /** '' when absent. */
  readonly resourceVersion: string;
  readonly resourceVersionMatch: string;
  /** Undefined means no limit. */
  readonly limit: number | undefined;
  readonly continueToken: string;
  readonly sendInitialEvents: boolean;
  readonly allowWatchBookmarks: boolean;
  readonly timeoutSeconds: number | undefined;
  readonly hasSelector: boolean;
  /** Whether an object matches the namespace, the name and both selectors. */
  readonly matches: (object: StoredObject) => boolean;
}

/** Reads and checks the query; rejects with the Status the real server sends. */
export function parseListOptions(query: URLSearchParams, info: RequestInfo): ListOptions {
  const labelText = query.get('labelSelector') ?? '';
  const givenFields = query.get('fieldSelector') ?? '';
  const fieldText = info.name === undefined ? givenFields : `metadata.name=${info.name}`;
  const isWatch = isTrue(query.get('watch'));
  const options = {
    isWatch,
    resourceVersion: query.get('resourceVersion') ?? '',
    resourceVersionMatch: query.get('resourceVersionMatch') ?? '',
    limit: positive(query.get('limit')),
    continueToken: query.get('continue') ?? '',
    sendInitialEvents: isTrue(query.get('sendInitialEvents')),
    allowWatchBookmarks: isTrue(query.get('allowWatchBookmarks')),
    timeoutSeconds: positive(query.get('timeoutSeconds')),
    hasSelector: labelText !== '' || fieldText !== '',
    matches: matcherOf(info.resource, info.namespace, labelText, fieldText),
  };
  const errors = [...checkMatch(options, query.has('sendInitialEvents'))];
  if (errors.length > 0) throw invalidListOptions(errors);
  checkVersion(options);
  return options;
}

type Checked = Pick<ListOptions, 'isWatch' | 'resourceVersion' | 'resourceVersionMatch' | 'continueToken'>;

function* checkMatch(options: Checked, hasInitialEvents: boolean): Generator<FieldError, void> {
  const { isWatch, resourceVersion, resourceVersionMatch: match, continueToken } = options;
  const field = 'resourceVersionMatch';
  if (isWatch && !hasInitialEvents) {
    const why = 'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided';
    if (match !== '') yield forbiddenField(field, why);
  } else if (isWatch && match === '') {
    yield forbiddenField(field, 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan');
  } else if (isWatch && match !== 'NotOlderThan') yield unsupportedField(field, match, ['NotOlderThan']);
  if (isWatch) return;
  if (match !== '') {
    if (resourceVersion === '') {
      yield forbiddenField(field, 'resourceVersionMatch is forbidden unless resourceVersion is provided');
    } else if (match !== 'Exact' && match !== 'NotOlderThan') {
      yield unsupportedField(field, match, ['Exact', 'NotOlderThan', '']);
    } else if (match === 'Exact' && resourceVersion === '0') {
      yield forbiddenField(field, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"');
    }
    if (continueToken !== '')
      yield forbiddenField(field, 'resourceVersionMatch is forbidden when continue is provided');
  }
  if (hasInitialEvents) yield forbiddenField('sendInitialEvents', 'sendInitialEvents is forbidden for list');
}

function checkVersion(options: Checked): void {
  const { resourceVersion: version } = options;
  if (version !== '' && !/^[0-9]+$/.test(version)) {
    const quoted = JSON.stringify(version);
    const why = `resourceVersion: Invalid value: ${quoted}: strconv.ParseUint: parsing ${quoted}: invalid syntax`;
    throw options.isWatch ? internalError(why) : badRequest(`invalid resource version: ${why}`);
  }
  if (!options.isWatch && options.continueToken !== '' && version !== '' && version !== '0') {
    throw badRequest('specifying resource version is not allowed when using continue');
  }
}

function matcherOf(
  resource: ResourceDefinition,
  namespace: string,
  labelText: string,
  fieldText: string,
): ListOptions['matches'] {
  const labels = parseLabelSelector(labelText);
  const fields = parseFieldSelector(fieldText, resource);
  const name = nameOfFieldSelector(fieldText);
  return (object) =>
    (namespace === '' || object.namespace === namespace) &&
    (name === undefined || object.name === name) &&
    (labels === undefined || labels(object.value)) &&
    (fields === undefined || fields(object.value));
}

function isTrue(text: string | null): boolean {
  return text === 'true' || text === '1';
}

function positive(text: string | null): number | undefined {
  const value = Number(text ?? 0);
  return Number.isInteger(value) && value > 0 ? value : undefined;
}
