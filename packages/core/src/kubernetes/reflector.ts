import * as check from '../base/argument.ts';
import type { Logger } from '../base/log.ts';
import type { ResourceEvent } from '../model/state/cluster-event.ts';
import { type Clock, type Millis, millis, type Random } from '../base/time.ts';
import {
  type ApiBody,
  type ApiClient,
  parseWatchLine,
  splitLines,
  type RawObject,
  type WatchEvent,
} from './api-client.ts';
import { ApiFailure, brokenOff, isCut, isExpired, isSilent } from './api-failure.ts';
import { newBackOff, type BackOff } from '../base/back-off.ts';
import { streamList } from './stream-list.ts';
import { OutageLog, OutageWaits } from './outages.ts';
import type { ReflectorTimings, ResourceQuery } from './resources.ts';
import type { Projected } from './to-records.ts';

/** Receiver of measurements of a reflector, such as `SourceMetrics`. */
export interface ReflectorMetrics<K extends string> {
  /** Notes data. */
  heard(resource: K): void;
  /** Notes a complete list. */
  listed(resource: K): void;
  /** Counts the end of a watch or a list; undefined: without a failure. */
  ended(resource: K, failure: ApiFailure | undefined): void;
}

/** Dependencies of a reflector of objects of kind `K`, each of which becomes an `R`. */
export interface ReflectorOptions<K extends string, R> {
  readonly query: ResourceQuery<K>;
  readonly client: ApiClient;
  /** An ignored object counts as deleted. */
  readonly project: (raw: RawObject) => Projected<R> | { readonly status: 'ignored'; readonly name: string };
  /** Takes events in order. Must not throw. */
  readonly deliver: (event: ResourceEvent<K, R>) => void;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly timings: ReflectorTimings;
  /** Receives measurements. Default: none. */
  readonly sourceMetrics?: ReflectorMetrics<K> | undefined;
  /** Shared by the reflectors of one API server. Default: not shared. */
  readonly waits?: OutageWaits;
}

/** Wait before the next attempt. */
interface Pause {
  readonly duration: Millis;
  /** Whether the wait may end as soon as the server is back; false if the server requested the pause. */
  readonly canEndEarly: boolean;
}

/** Silent watches in a row until a new list. Such a watch may wait for a version that never comes (a restored etcd). */
const maxSilentWatches = 2;
/** Longest wait before the list after a 410, in milliseconds. */
const relistSpread = 1000;
/** Refusals of one version, other than 410, until a new list. */
const maxRefusedResumes = 5;

/**
 * Mirrors one resource: lists it in full, then follows its changes until aborted. Delivers a `replace` after each complete
 * list, at the start and after each 410; state is never emptied first. After any other failure it waits, and the watch
 * resumes from the last version seen.
 */
export class Reflector<K extends string, R> {
  readonly #options: ReflectorOptions<K, R>;
  readonly #backOff: BackOff;
  readonly #absentBackOff: BackOff;
  readonly #outages: OutageLog;
  readonly #waits: OutageWaits;
  /** Undefined until the first complete list, and again after a 410. */
  #resourceVersion: string | undefined;
  /** The same, but known after a 410 too: no list may be older. Undefined after the server has refused it. */
  #lastVersion: string | undefined;
  #hasWatchList = true;
  #silentWatches = 0;
  #refusedResumes = 0;
  /** Whether a version was refused with 410 and no attempt has succeeded since. */
  #hasExpired = false;
  #isAbsent = false;
  /** Time at which the present attempt became a working watch, or completed its list. */
  #openedAt: number | undefined;

  /** Throws `UsageError` for options of other types. */
  constructor(options: ReflectorOptions<K, R>) {
    check.requireFields('Reflector: options', options, optionChecks);
    this.#options = options;
    const { backOff, absentRecheck } = options.timings;
    this.#backOff = newBackOff(backOff, options.random);
    this.#absentBackOff = newBackOff({ ...backOff, max: absentRecheck }, options.random);
    this.#outages = new OutageLog(options.log, options.clock, options.query.kind);
    this.#waits = options.waits ?? new OutageWaits(options.clock);
  }

  /** Runs until aborted; then rejects with `signal.reason`. */
  async run(signal: AbortSignal): Promise<never> {
    const { clock } = this.#options;
    for (;;) {
      const { duration, canEndEarly } = await this.#attempt(signal);
      if (duration <= 0) continue;
      if (canEndEarly) await this.#waits.sleep(duration, signal);
      else await clock.sleep(duration, signal); // the server requested it, or would refuse again
    }
  }

  /** One list or watch. */
  async #attempt(signal: AbortSignal): Promise<Pause> {
    const { clock, timings } = this.#options;
    const startedFrom = this.#resourceVersion;
    const isWatch = startedFrom !== undefined || this.#hasWatchList;
    let failure: ApiFailure | undefined;
    this.#openedAt = undefined;
    try {
      if (startedFrom !== undefined) await this.#watch(startedFrom, signal);
      else if (this.#hasWatchList) await this.#watchList(signal);
      else await this.#list(signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ApiFailure)) throw error;
      failure = error;
    }
    // A complete list is neither a failure nor the end of a watch.
    if (isWatch || failure !== undefined) this.#options.sourceMetrics?.ended(this.#options.query.kind, failure);
    const lasted = this.#openedAt === undefined ? -1 : clock.monotonic() - this.#openedAt;
    const hasMoved = startedFrom !== undefined && this.#resourceVersion !== startedFrom;
    const hasSynced = startedFrom === undefined && this.#openedAt !== undefined;
    const isFruitful = lasted >= timings.shortWatch || (hasMoved && this.#resourceVersion !== undefined);
    // A full list alone does not reset the back-off: if the watch after it is refused, lists must not repeat without pause.
    if (isFruitful) {
      this.#backOff.reset();
      this.#refusedResumes = 0;
      this.#hasExpired = false;
    }
    if (failure !== undefined) {
      const isResume = startedFrom !== undefined;
      return { duration: this.#waitAfter(failure, isFruitful, isResume), canEndEarly: isServerAway(failure) };
    }
    const endedAtOnce = (): Millis => this.#fail(brokenOff(`watch ${this.#options.query.path}`, 'ended at once'));
    return { duration: isFruitful || hasSynced ? millis(0) : endedAtOnce(), canEndEarly: false };
  }

  /** Returns the wait after a failure, and decides from where to continue. */
  #waitAfter(failure: ApiFailure, isFruitful: boolean, isResume: boolean): Millis {
    // The API server stopped; another instance, or its successor, may already answer.
    if ((isCut(failure) || isSilent(failure)) && isFruitful) return this.#backOff.next();
    if (this.#resourceVersion === undefined) {
      const { status } = failure;
      if (isRefusedVersion(failure)) this.#lastVersion = undefined; // perhaps etcd was restored, and it lies in the future
      // Authorization comes before routing: a role older than the resource gives 403 where it is not served.
      if (this.#options.query.isOptional && (status === 404 || status === 403)) return this.#markAbsent(failure);
      if (!this.#hasWatchList || (status !== 400 && status !== 422)) return this.#fail(failure);
      this.#hasWatchList = false;
      return millis(0);
    }
    if (isExpired(failure)) {
      this.#resourceVersion = undefined;
      // The server answers: a back-off that grew during an outage must not delay the list.
      const isFirst = isResume && !this.#hasExpired;
      this.#hasExpired = true;
      // All nodes may have to list at the same moment.
      return isFruitful || isFirst ? millis(this.#options.random() * relistSpread) : this.#backOff.next();
    }
    if (isRefusedVersion(failure) && ++this.#refusedResumes >= maxRefusedResumes) {
      this.#refusedResumes = 0;
      this.#forget();
    }
    return this.#fail(failure);
  }

  #fail(failure: ApiFailure): Millis {
    const wait = this.#backOff.next();
    this.#outages.lost(failure);
    // Spread over a second, so that not all nodes return at the same moment.
    const asked = failure.retryAfter === undefined ? 0 : failure.retryAfter + this.#options.random() * 1000;
    return millis(Math.max(wait, asked));
  }

  #markAbsent(failure: ApiFailure): Millis {
    if (!this.#isAbsent) {
      this.#isAbsent = true;
      const fields = { resource: this.#options.query.kind, error: failure.message };
      this.#options.log.info('resource is not available; treated as empty', fields);
      this.#replace([]);
    }
    return this.#absentBackOff.next();
  }

  /** Lists and watches with one request (KEP-3157): objects first, then a bookmark that ends them, then changes. */
  async #watchList(signal: AbortSignal): Promise<void> {
    const initial = new Map<string, R>();
    const version = this.#lastVersion === undefined ? {} : { resourceVersion: this.#lastVersion };
    const query = this.#watchQuery({ ...version, sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' });
    const read = async (body: ApiBody): Promise<void> => {
      body.setInactivity(this.#options.timings.initialInactivity);
      await this.#eachEvent(body, (event) => {
        if (this.#resourceVersion !== undefined) return this.#apply(event);
        if (event.kind === 'error') throw event.error;
        if (event.kind !== 'bookmark') return this.#collect(initial, event.object, event.kind === 'deleted');
        if (!event.isInitialEventsEnd) return;
        this.#synced(event.resourceVersion, [...initial.values()]);
        initial.clear();
        body.setInactivity(this.#options.timings.inactivity);
      });
    };
    try {
      await this.#options.client.get({ path: this.#options.query.path, query, takesGzip: true }, read, signal);
    } catch (error) {
      // A server that predates the parameter ignores it: it sends the objects, but no bookmark. Lists this once.
      if (!isSilent(error) || this.#resourceVersion !== undefined) throw error;
      await this.#list(signal);
    }
  }

  /** Lists everything by one request. */
  async #list(signal: AbortSignal): Promise<void> {
    const { path, selectors } = this.#options.query;
    const listed = new Map<string, R>();
    const list = {
      path,
      selectors,
      notOlderThan: this.#lastVersion,
      onItem: (item: RawObject) => this.#collect(listed, item, false),
    };
    const resourceVersion = await streamList(this.#options.client, list, signal);
    this.#synced(resourceVersion, [...listed.values()]);
  }

  /** Follows changes after a version. */
  async #watch(from: string, signal: AbortSignal): Promise<void> {
    const { client, clock, query, timings } = this.#options;
    let lines = 0;
    const read = async (body: ApiBody): Promise<void> => {
      body.setInactivity(timings.inactivity);
      this.#openedAt = clock.monotonic();
      this.#recovered();
      await this.#eachEvent(body, (event) => {
        lines++;
        this.#apply(event);
      });
    };
    try {
      await client.get({ path: query.path, query: this.#watchQuery({ resourceVersion: from }) }, read, signal);
      this.#silentWatches = 0;
    } catch (error) {
      this.#silentWatches = isSilent(error) && lines === 0 ? this.#silentWatches + 1 : 0;
      if (this.#silentWatches >= maxSilentWatches) {
        this.#silentWatches = 0;
        this.#forget();
      }
      throw error;
    }
  }

  #watchQuery(parameters: Readonly<Record<string, string>>): URLSearchParams {
    const { query, random, timings } = this.#options;
    const { min, max } = timings.watchTimeout;
    const timeout = Math.round((min + random() * (max - min)) / 1000);
    const all = new URLSearchParams({
      ...query.selectors,
      ...parameters,
      watch: 'true',
      allowWatchBookmarks: 'true',
      timeoutSeconds: `${timeout}`,
    });
    all.sort();
    return all;
  }

  /** Handles the lines of one chunk without yielding, so that events that arrive together stay together. */
  async #eachEvent(body: ApiBody, handle: (event: WatchEvent) => void): Promise<void> {
    for await (const lines of splitLines(body.chunks(), body.request)) {
      this.#options.sourceMetrics?.heard(this.#options.query.kind);
      for (const line of lines) handle(parseWatchLine(line, body.request));
    }
  }

  #apply(event: WatchEvent): void {
    if (event.kind === 'error') throw event.error;
    if (event.kind === 'bookmark') return this.#advance(event.resourceVersion);
    const resource = this.#options.query.kind;
    const projected = this.#options.project(event.object);
    const version = event.object.metadata?.resourceVersion;
    const at = { resource, resourceVersion: numberOf(version) };
    if (event.kind === 'changed' && projected.status === 'record') {
      this.#options.deliver({ kind: 'upsert', ...at, item: projected.record });
    } else if (projected.name !== '') {
      // A change may turn an object into one that the projection ignores; it is deleted then.
      this.#options.deliver({ kind: 'delete', ...at, name: projected.name });
    }
    this.#advance(version);
  }

  #collect(into: Map<string, R>, object: RawObject, isDeleted: boolean): void {
    const projected = this.#options.project(object);
    if (!isDeleted && projected.status === 'record') into.set(projected.name, projected.record);
    else into.delete(projected.name);
  }

  #synced(resourceVersion: string, items: readonly R[]): void {
    this.#advance(resourceVersion);
    this.#openedAt = this.#options.clock.monotonic();
    this.#isAbsent = false;
    this.#absentBackOff.reset();
    this.#options.log.debug('listed in full', {
      resource: this.#options.query.kind,
      objects: items.length,
      resourceVersion,
    });
    this.#options.sourceMetrics?.listed(this.#options.query.kind);
    this.#replace(items);
    this.#recovered();
  }

  #recovered(): void {
    if (!this.#outages.recovered()) return;
    this.#options.sourceMetrics?.heard(this.#options.query.kind);
    this.#waits.end();
  }

  #forget(): void {
    this.#resourceVersion = this.#lastVersion = undefined;
  }

  #advance(resourceVersion: string | undefined): void {
    if (resourceVersion !== undefined && resourceVersion !== '')
      this.#resourceVersion = this.#lastVersion = resourceVersion;
  }

  #replace(items: readonly R[]): void {
    const { deliver, query } = this.#options;
    const resourceVersion = numberOf(this.#resourceVersion);
    deliver({ kind: 'replace', resource: query.kind, resourceVersion, items });
  }
}

const optionChecks: Readonly<Record<string, check.ArgumentCheck>> = {
  query: check.withFields({ kind: check.requireText, path: check.requireText, selectors: check.objectArgument }),
  client: check.withMethods('open', 'get'),
  project: check.requireFunction,
  deliver: check.requireFunction,
  clock: check.requireClock,
  random: check.requireFunction,
  log: check.requireLogger,
  timings: check.withFields({
    backOff: check.objectArgument,
    watchTimeout: check.objectArgument,
    absentRecheck: check.requireNumber,
  }),
  sourceMetrics: check.optional(check.withMethods('heard', 'listed', 'ended')),
  waits: check.optional(check.withMethods('sleep', 'end')),
};

/** Undefined for a server whose versions are no numbers; Kubernetes promises numbers since 1.35 (KEP-5504), and etcd has always had them. */
function numberOf(resourceVersion: string | undefined): number | undefined {
  return resourceVersion !== undefined && /^\d+$/.test(resourceVersion) ? Number(resourceVersion) : undefined;
}

/** Whether the server did not answer, or a proxy in front of it answered that it is unavailable. */
function isServerAway({ status, retryAfter }: ApiFailure): boolean {
  return status === undefined || (status >= 500 && retryAfter === undefined);
}

/** Whether the refusal may concern the requested version rather than the account or the server's health. */
function isRefusedVersion(failure: ApiFailure): boolean {
  return failure.status !== undefined && ![401, 403, 429, 503].includes(failure.status);
}
