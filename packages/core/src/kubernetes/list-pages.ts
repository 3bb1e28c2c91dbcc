import type { ApiBody, ApiClient } from './api-client.ts';
import { brokenOff, isExpired } from './api-failure.ts';
import type { RawObject } from './api-client.ts';

/** Objects per page. Parsing a page takes 12 ms; parsing everything at once would block for a second. */
const pageSize = 500;

/** One list, page by page. */
interface ListRequest {
  readonly path: string;
  readonly selectors: Readonly<Record<string, string>>;
  /** Called before the first page of each attempt; the caller discards the items of an earlier attempt. */
  readonly onStart: () => void;
  /** Called for each object. Items carry neither kind nor apiVersion. */
  readonly onItem: (item: RawObject) => void;
}

/**
 * Lists a resource in pages, all of one version. The request names no resourceVersion: with one, servers ignore the limit and
 * send everything at once. If the pages expire in between (410), it starts over once; after that it takes the whole list in
 * one piece from the server's cache, which cannot expire. Resolves with the version from which a watch continues: that of the
 * first page, which all pages share.
 */
export async function listPages(client: ApiClient, list: ListRequest, signal: AbortSignal): Promise<string> {
  for (let attempt = 1; attempt <= 2; attempt++) {
    try {
      return await readPages(client, list, { limit: `${pageSize}` }, signal);
    } catch (error) {
      if (!isExpired(error)) throw error;
    }
  }
  return readPages(client, list, { resourceVersion: '0' }, signal);
}

async function readPages(
  client: ApiClient,
  list: ListRequest,
  parameters: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<string> {
  list.onStart();
  let resourceVersion: string | undefined;
  for (let next: string | undefined = ''; next !== undefined;) {
    const query = new URLSearchParams({ ...list.selectors, ...parameters, ...(next === '' ? {} : { continue: next }) });
    query.sort();
    const page = await client.get({ path: list.path, query }, readPage, signal);
    page.items.forEach(list.onItem);
    resourceVersion ??= page.resourceVersion;
    next = page.continue === '' ? undefined : page.continue;
  }
  return resourceVersion ?? '';
}

interface Page {
  readonly items: readonly RawObject[];
  readonly resourceVersion: string;
  /** Empty on the last page. */
  readonly continue: string;
}

async function readPage(body: ApiBody): Promise<Page> {
  const chunks: Buffer[] = [];
  for await (const chunk of body.chunks()) chunks.push(chunk);
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch (error) {
    throw brokenOff(body.request, 'the list is not JSON', error);
  }
  const isList = (
    value: unknown,
  ): value is { items?: readonly RawObject[] | null; metadata: Readonly<Record<string, string>> } =>
    typeof value === 'object' && value !== null && 'metadata' in value && typeof value.metadata === 'object';
  if (!isList(parsed) || typeof parsed.metadata?.['resourceVersion'] !== 'string') {
    throw brokenOff(body.request, 'the answer is not a list: it has no metadata.resourceVersion');
  }
  return {
    items: parsed.items ?? [],
    resourceVersion: parsed.metadata['resourceVersion'],
    continue: parsed.metadata['continue'] ?? '',
  };
}
