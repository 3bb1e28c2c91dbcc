import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import type { JsonObject } from '../json.ts';
import { apiVersionOf, type ResourceDefinition } from '../resource.ts';
import { expired } from '../status-error.ts';
import { type StoredObject, storedObject, type StoreEvent, type WatchEventType } from '../store.ts';
import type { ServerContext } from './handler.ts';
import type { ListOptions } from './list.ts';
import { type RenderOptions, tableOf } from './representation.ts';
import { setCommonHeaders } from './messages.ts';

export interface WatchRequest {
  readonly resource: ResourceDefinition;
  readonly options: ListOptions;
  readonly render: RenderOptions;
  readonly response: ServerResponse;
  /** Whether each write is a gzip member (kubernetes/kubernetes#139925). */
  readonly isCompressed: boolean;
}

/** Duration of a watch without `timeoutSeconds`. */
const defaultTimeout = 1_800;
/** A bookmark comes this long before the end of the stream. */
const lastBookmarkLead = 2_000;
/** The first change after a WatchList is followed by a bookmark. */
const earlyBookmarkDelay = 100;
/** Initial events are written in pieces of about this many characters. */
const pieceSize = 64 * 1024;

/** One open watch stream. */
export class WatchSession {
  readonly #request: WatchRequest;
  readonly #context: ServerContext;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #onEnd: () => void;
  #subscription: Disposable | undefined;
  /** Version of the last bookmark or of the start. Only a newer version gives another bookmark. */
  #bookmarked: number;
  #wantsEarlyBookmark: boolean;
  #hasSentColumns = false;
  #held: string[] | undefined;

  constructor(context: ServerContext, request: WatchRequest, onEnd: () => void) {
    this.#context = context;
    this.#request = request;
    this.#onEnd = onEnd;
    this.#bookmarked = context.store.resourceVersion;
    this.#wantsEarlyBookmark = request.options.sendInitialEvents;
  }

  /** Sends the headers and the initial events, then follows the store until the stream ends. Call it once. */
  start(): void {
    const { response } = this.#request;
    setCommonHeaders(response);
    response.setHeader('Content-Type', 'application/json');
    if (this.#request.isCompressed) response.setHeader('Content-Encoding', 'gzip');
    response.writeHead(200);
    response.flushHeaders();
    response.once('close', () => this.#release());
    this.#sendStart();
  }

  /** Ends the body cleanly, as the server does at a time-out. */
  end(): void {
    this.#release();
    this.#request.response.end();
  }

  /** Cuts the connection without the terminating chunk, as a killed server does. */
  reset(): void {
    this.#release();
    this.#request.response.destroy();
  }

  /** Withholds events and bookmarks until `resume` sends them. */
  hold(): void {
    this.#held ??= [];
  }

  /** Ends `hold`. */
  resume(): void {
    const held = this.#held;
    this.#held = undefined;
    if (held !== undefined && held.length > 0) this.#write(held.join(''));
  }

  #sendStart(): void {
    const { resource, options } = this.#request;
    const from = Number(options.resourceVersion || 0);
    if (!options.sendInitialEvents && from > 0) return this.#follow(from);
    const { items, resourceVersion } = this.#context.store.list(resource);
    this.#sendInitial(this.#pieces(items), () => {
      if (options.sendInitialEvents) this.#sendBookmark('initial-end', resourceVersion);
      this.#follow(resourceVersion);
    });
  }

  /** Sends the events after a version, then those to come. */
  #follow(from: number): void {
    const { store } = this.#context;
    const { resource } = this.#request;
    if (from < store.oldestVersion) {
      const status = expired(`too old resource version: ${from} (${store.oldestVersion})`).toStatus();
      this.#write(`${JSON.stringify({ type: 'ERROR', object: status })}\n`);
      return this.end();
    }
    this.#bookmarked = Math.min(from, store.resourceVersion);
    for (const event of store.eventsAfter(resource, from)) this.#send(event);
    this.#subscription = store.subscribe(resource, (event) => this.#send(event));
    this.#startTimers();
  }

  /** Sends pieces as fast as the client takes them. Those that fit into the socket's buffer are sent before this returns. */
  #sendInitial(pieces: Iterator<string, undefined>, then: () => void): void {
    for (let piece = pieces.next(); piece.done !== true; piece = pieces.next()) {
      if (this.#write(piece.value)) continue;
      const { response } = this.#request;
      response.once('drain', () => {
        if (!response.writableEnded) this.#sendInitial(pieces, then);
      });
      return;
    }
    then();
  }

  *#pieces(items: readonly StoredObject[]): Generator<string, undefined> {
    let piece: string[] = [];
    let size = 0;
    for (const item of items) {
      if (!this.#request.options.matches(item)) continue;
      const line = this.#lineOf('ADDED', item);
      piece.push(line);
      size += line.length;
      if (size < pieceSize) continue;
      yield piece.join('');
      piece = [];
      size = 0;
    }
    if (piece.length > 0) yield piece.join('');
    return undefined;
  }

  #send(event: StoreEvent): void {
    const from = Number(this.#request.options.resourceVersion || 0);
    if (event.resourceVersion <= from) return;
    const seen = this.#seenAs(event);
    if (seen === undefined) return;
    this.#write(this.#lineOf(seen.type, seen.object));
    if (!this.#wantsEarlyBookmark) return;
    this.#wantsEarlyBookmark = false;
    this.#after(earlyBookmarkDelay, () => this.#sendBookmark('periodic'));
  }

  /** Returns the event as the selectors show it; undefined if the watcher does not see it. */
  #seenAs(event: StoreEvent): { readonly type: WatchEventType; readonly object: StoredObject } | undefined {
    const { matches } = this.#request.options;
    const { previous, next, deleted } = event;
    const was = previous !== undefined && matches(previous);
    if (deleted !== undefined) return was ? { type: 'DELETED', object: deleted } : undefined;
    if (next !== undefined && matches(next)) return { type: was ? 'MODIFIED' : 'ADDED', object: next };
    if (!was) return undefined;
    return { type: 'DELETED', object: storedObject(event.resource, previous.value, event.resourceVersion) };
  }

  #lineOf(type: WatchEventType, object: StoredObject): string {
    const { render } = this.#request;
    if (render.representation === 'object') return object.line(type);
    return `${JSON.stringify({ type, object: this.#tableOf([object]) })}\n`;
  }

  #tableOf(objects: readonly StoredObject[]): JsonObject {
    const { resource, render } = this.#request;
    const resourceVersion = String(objects[0]?.resourceVersion ?? this.#context.store.resourceVersion);
    const table = tableOf(resource, objects, { resourceVersion }, { ...render, now: this.#context.clock.now() });
    if (this.#hasSentColumns) return { ...table, columnDefinitions: null };
    this.#hasSentColumns = true;
    return table;
  }

  #sendBookmark(kind: 'periodic' | 'initial-end', version = this.#context.store.resourceVersion): void {
    const { resource, options, render } = this.#request;
    if (!options.allowWatchBookmarks) return;
    if (kind === 'periodic' && version <= this.#bookmarked) return;
    this.#bookmarked = version;
    const metadata: JsonObject =
      kind === 'initial-end'
        ? { resourceVersion: String(version), annotations: { 'k8s.io/initial-events-end': 'true' } }
        : { resourceVersion: String(version) };
    const type = { kind: resource.kind, apiVersion: apiVersionOf(resource) };
    const object =
      render.representation === 'table' ? this.#tableOf([]) : { ...type, metadata, ...resource.bookmarkShell };
    this.#write(`${JSON.stringify({ type: 'BOOKMARK', object })}\n`);
  }

  #startTimers(): void {
    const { options } = this.#request;
    const timeout = (options.timeoutSeconds ?? defaultTimeout) * 1000;
    this.#after(timeout, () => this.end());
    if (!options.allowWatchBookmarks) return;
    if (timeout > lastBookmarkLead) this.#after(timeout - lastBookmarkLead, () => this.#sendBookmark('periodic'));
    const interval = setInterval(() => this.#sendBookmark('periodic'), this.#context.bookmarkInterval);
    this.#timers.push(interval.unref());
  }

  #after(delay: number, action: () => void): void {
    this.#timers.push(setTimeout(action, delay).unref());
  }

  /** Returns false when the client should take what was written before more is. */
  #write(text: string): boolean {
    const { response, isCompressed } = this.#request;
    if (this.#held === undefined) return response.write(isCompressed ? gzipSync(text, { level: 1 }) : text);
    this.#held.push(text);
    return true;
  }

  #release(): void {
    this.#subscription?.[Symbol.dispose]();
    this.#subscription = undefined;
    for (const timer of this.#timers.splice(0)) clearTimeout(timer);
    this.#onEnd();
  }
}
