import { waitFor } from '../../base/abortable.ts';
import * as check from '../../base/argument.ts';
import { messageOf } from '../../base/errors.ts';
import type { EventRecorder, EventSubject, RecordedEvent, Logger } from '../../base/log.ts';
import { type Clock, type Millis, millis, seconds } from '../../base/time.ts';
import type { JsonAnswer, JsonRequest, SendJson } from '../send-json.ts';
import { EventBudget, agentEventPolicy, type EventPolicy } from './event-policy.ts';
import {
  eventName,
  eventNamespace,
  eventObject,
  type EventReporter,
  type EventSeries,
  seriesKey,
  seriesPatch,
  subjectUid,
} from './event-object.ts';

/** Options of a recorder that writes to an API server. */
export interface ApiEventsOptions {
  readonly send: SendJson;
  readonly reporter: EventReporter;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Default: `agentEventPolicy`. */
  readonly policy?: EventPolicy;
  /** Longest wait of disposal for unsent events. Default: one second. */
  readonly flushTime?: Millis;
}

/** Minimum interval between two updates of a series; the first repetition is sent at once. */
const repeatInterval: Millis = seconds(60);
/** Wait after a 403 answer. */
const refusedPause: Millis = seconds(600);
const firstRetry: Millis = seconds(1);
const longestRetry: Millis = seconds(60);
const maxAttempts = 10;
const defaultFlushTime: Millis = seconds(1);

interface Series extends EventSeries {
  last: Millis;
  count: number;
  name: string;
  /** Part of `count` that the API server has received; 0: no object exists there. */
  sent: number;
  /** Monotonic: earliest time of the next request. */
  dueAt: number;
  /** Monotonic: time of the last repetition. */
  seenAt: number;
  attempts: number;
}

/**
 * Writes events to events.k8s.io/v1 in the background, one request at a time. Repetitions become a series of one object;
 * the number of series and their rate are bounded. Drops an event after ten failed attempts. Disposal sends waiting events,
 * for `flushTime` at most.
 */
export class ApiEventRecorder implements EventRecorder, AsyncDisposable {
  readonly #options: ApiEventsOptions;
  readonly #policy: EventPolicy;
  readonly #budgets = new Map<string, EventBudget>();
  readonly #series = new Map<string, Series>();
  readonly #stop = new AbortController();
  readonly #work: Promise<void>;
  #poked = Promise.withResolvers<void>();
  #named = 0;
  #isDropping = false;
  #isRefused = false;
  #pausedUntil = -Infinity;

  /** Throws `UsageError` for options of other types. */
  constructor(options: ApiEventsOptions) {
    const reporter = { controller: check.requireText, instance: check.requireText };
    check.requireFields('ApiEventRecorder: options', options, {
      send: check.requireFunction,
      reporter: check.withFields(reporter),
      clock: check.requireClock,
      logger: check.requireLogger,
      policy: check.optional(check.objectArgument),
      flushTime: check.optional(check.requireNumber),
    });
    this.#options = options;
    this.#policy = options.policy ?? agentEventPolicy;
    this.#work = this.#run(this.#stop.signal);
  }

  record(event: RecordedEvent): void {
    const { clock, logger } = this.#options;
    const { type, reason, regarding, note } = event;
    logger.debug('event', {
      type,
      reason,
      regarding: `${regarding.kind} ${regarding.namespace}/${regarding.name}`,
      note,
    });
    const key = seriesKey(event, this.#policy.notes);
    const known = this.#series.get(key);
    if (known !== undefined && clock.monotonic() - known.seenAt < this.#policy.seriesEnd) {
      known.count++;
      known.last = clock.now();
      known.seenAt = clock.monotonic();
    } else if (!this.#begin(key, event)) return;
    this.#poked.resolve();
  }

  /** Whether no new event waits to be sent. */
  get isIdle(): boolean {
    return ![...this.#series.values()].some((one) => one.sent === 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { clock, flushTime = defaultFlushTime } = this.#options;
    const until = clock.monotonic() + flushTime;
    const step = millis(20);
    while (!this.isIdle && !this.#isRefused && clock.monotonic() < until) await clock.sleep(step, this.#stop.signal);
    this.#stop.abort();
    await this.#work;
  }

  #begin(key: string, event: RecordedEvent): boolean {
    const { clock, logger } = this.#options;
    this.#forgetOver();
    if (this.#series.size >= this.#policy.maxSeries || !this.#budgetOf(event.regarding).take()) {
      if (!this.#isDropping)
        logger.warn('too many different events; some are not sent to the API server', { reason: event.reason });
      this.#isDropping = true;
      return false;
    }
    this.#isDropping = false;
    const now = clock.now();
    const at = clock.monotonic();
    const name = eventName(event, now, this.#named++);
    this.#series.set(key, {
      event,
      name,
      first: now,
      last: now,
      count: 1,
      sent: 0,
      dueAt: at,
      seenAt: at,
      attempts: 0,
    });
    return true;
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const next = this.#next();
      const wait = Math.max(next?.dueAt ?? Infinity, this.#pausedUntil) - this.#options.clock.monotonic();
      if (next === undefined || wait > 0) await this.#pause(wait, signal);
      else await this.#deliver(next, signal);
    }
  }

  /** Waits until an event is recorded, or `time` has passed. */
  async #pause(time: number, signal: AbortSignal): Promise<void> {
    await waitFor(this.#poked.promise, { clock: this.#options.clock, limit: time }, signal);
    this.#poked = Promise.withResolvers<void>();
  }

  /** Returns the series with unsent events that is due first. */
  #next(): Series | undefined {
    let next: Series | undefined;
    for (const one of this.#series.values()) {
      if (one.count > one.sent && (next === undefined || one.dueAt < next.dueAt)) next = one;
    }
    return next;
  }

  #budgetOf({ kind, namespace, name }: EventSubject): EventBudget {
    const key = this.#policy.budgetPer === 'recorder' ? '' : `${kind} ${namespace}/${name}`;
    let budget = this.#budgets.get(key);
    if (budget === undefined) {
      budget = new EventBudget(this.#options.clock, this.#policy.rate);
      this.#budgets.set(key, budget);
    }
    return budget;
  }

  #forgetOver(): void {
    const now = this.#options.clock.monotonic();
    for (const [key, one] of this.#series) {
      if (one.count === one.sent && now - one.seenAt >= this.#policy.seriesEnd) this.#series.delete(key);
    }
    for (const [key, budget] of this.#budgets) if (budget.isFull) this.#budgets.delete(key);
  }

  async #deliver(series: Series, signal: AbortSignal): Promise<void> {
    const { send, clock } = this.#options;
    const { count } = series;
    try {
      const answer = await send(await this.#requestFor(series, signal), signal);
      this.#settle(series, answer, count);
    } catch (error) {
      if (signal.aborted) return;
      // Any error: an event must never end the agent.
      this.#retry(series, messageOf(error), undefined);
    }
    if (series.sent === count) {
      series.attempts = 0;
      series.dueAt = clock.monotonic() + (count === 1 ? 0 : repeatInterval);
    }
  }

  async #requestFor(series: Series, signal: AbortSignal): Promise<JsonRequest> {
    const path = `/apis/events.k8s.io/v1/namespaces/${encodeURIComponent(eventNamespace(series.event))}/events`;
    if (series.sent > 0) {
      return { method: 'PATCH', path: `${path}/${encodeURIComponent(series.name)}`, body: seriesPatch(series) };
    }
    const uid = await subjectUid(series.event.regarding, this.#options.send, signal);
    return { method: 'POST', path, body: eventObject(series, this.#options.reporter, uid) };
  }

  #settle(series: Series, { status, body, retryAfter }: JsonAnswer, count: number): void {
    const { logger, clock } = this.#options;
    if (status < 300 || (status === 409 && series.sent === 0)) {
      if (this.#isRefused) logger.info('events are accepted again');
      this.#isRefused = false;
      series.sent = count;
    } else if (status === 403) {
      if (!this.#isRefused) {
        logger.warn('events are refused; grant "create" and "patch" on events of events.k8s.io to this account', {
          answer: body.slice(0, 300),
        });
      }
      this.#isRefused = true;
      this.#pausedUntil = clock.monotonic() + refusedPause;
    } else if (status === 404 && series.sent > 0) {
      // The server keeps events for an hour: a later repetition needs a new object.
      series.sent = 0;
      series.name = eventName(series.event, clock.now(), this.#named++);
    } else if (status === 401 || status === 429 || status >= 500) {
      this.#retry(series, `answered ${status}`, retryAfter);
    } else this.#giveUp(series, `answered ${status}: ${body.slice(0, 300)}`);
  }

  #retry(series: Series, why: string, after: Millis | undefined): void {
    series.attempts++;
    if (series.attempts >= maxAttempts) return this.#giveUp(series, why);
    const wait = after ?? Math.min(longestRetry, firstRetry * 2 ** (series.attempts - 1));
    series.dueAt = this.#options.clock.monotonic() + wait;
  }

  #giveUp(series: Series, why: string): void {
    const { reason, regarding } = series.event;
    this.#options.logger.info('an event was not delivered', { reason, regarding: regarding.name, why });
    series.sent = series.count;
    this.#series.delete(seriesKey(series.event, this.#policy.notes));
  }
}
