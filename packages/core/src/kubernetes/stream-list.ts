import type { ApiBody, ApiClient, RawObject } from './api-client.ts';
import { brokenOff } from './api-failure.ts';

/** One list. */
interface ListRequest {
  readonly path: string;
  readonly selectors: Readonly<Record<string, string>>;
  /** The list is of this version or a later one; undefined: of any version that the server has in its cache. */
  readonly notOlderThan: string | undefined;
  /** Called for each object as it arrives. Items carry neither kind nor apiVersion. */
  readonly onItem: (item: RawObject) => void;
}

/**
 * Lists a resource by one request that the server answers from its watch cache: a list without a resourceVersion, as one by
 * pages must be, reads etcd (Kubernetes before 1.31) and expires between its pages. Resolves with the list's version.
 */
export async function streamList(
  client: Pick<ApiClient, 'get'>,
  list: ListRequest,
  signal: AbortSignal,
): Promise<string> {
  const { path, selectors, notOlderThan, onItem } = list;
  const version = { resourceVersion: notOlderThan ?? '0', resourceVersionMatch: 'NotOlderThan' };
  const query = new URLSearchParams({ ...selectors, ...version });
  query.sort();
  return client.get({ path, query, takesGzip: true }, (body) => readList(body, onItem), signal);
}

const itemsKey = Buffer.from('"items":[');
/** Between two items as Go writes them: ObjectMeta is the first field of each. May also be within an item. */
const betweenItems = Buffer.from('},{"metadata":{');

/** etcd limits objects to about 1.5 MiB. A longer piece without a cut is not written as by Go. */
const longestItem = 4 * 1024 * 1024;

/** Parses item by item, so that a list of 100 MB needs the memory of one chunk. Another JSON format is parsed at its end. */
async function readList(body: ApiBody, onItem: (item: RawObject) => void): Promise<string> {
  let head: Buffer | undefined;
  let parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of body.chunks()) {
    parts.push(chunk);
    length += chunk.length;
    if (length > longestItem) continue;
    let rest: Buffer = Buffer.concat(parts);
    if (head === undefined) {
      const start = rest.indexOf(itemsKey) + itemsKey.length;
      if (start < itemsKey.length) continue;
      head = rest.subarray(0, start);
      rest = rest.subarray(start);
    }
    rest = takeItems(rest, onItem);
    parts = [rest];
    length = rest.length;
  }
  const { items, version } = parseList(Buffer.concat([head ?? Buffer.alloc(0), ...parts]), body.request);
  items.forEach(onItem);
  return version;
}

/** Returns what follows the last complete item. */
function takeItems(bytes: Buffer, onItem: (item: RawObject) => void): Buffer {
  let rest = bytes;
  for (let at = rest.indexOf(betweenItems); at >= 0;) {
    const item = tryParse(rest.subarray(0, at + 1));
    if (item === undefined) {
      at = rest.indexOf(betweenItems, at + 1);
      continue;
    }
    onItem(item);
    rest = rest.subarray(at + 2);
    at = rest.indexOf(betweenItems);
  }
  return rest;
}

function tryParse(json: Buffer): RawObject | undefined {
  try {
    return JSON.parse(json.toString('utf8')) as RawObject;
  } catch {
    return undefined; // it is cut within an object of the item
  }
}

/** The end of a list, without the items that were taken before. */
function parseList(json: Buffer, request: string): { readonly items: readonly RawObject[]; readonly version: string } {
  let parsed: unknown;
  try {
    parsed = JSON.parse(json.toString('utf8'));
  } catch (error) {
    throw brokenOff(request, 'the list is not JSON', error);
  }
  const isList = (
    value: unknown,
  ): value is { items?: readonly RawObject[] | null; metadata: Readonly<Record<string, unknown>> | null } =>
    typeof value === 'object' && value !== null && 'metadata' in value && typeof value.metadata === 'object';
  const version = isList(parsed) ? parsed.metadata?.['resourceVersion'] : undefined;
  if (!isList(parsed) || typeof version !== 'string')
    throw brokenOff(request, 'the answer is not a list: it has no metadata.resourceVersion');
  return { items: parsed.items ?? [], version };
}
