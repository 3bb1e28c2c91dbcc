import type { Millis } from '@switchyard/core';
import type { LoadOutcome, LoadProgramOptions, LoadResult } from './load.ts';
import { probe } from './probe.ts';
import type { ProbeRequest, ProbeResult } from './probe-types.ts';

/** Due times of an open loop's requests, in milliseconds of any clock. */
export interface LoadSchedule {
  readonly start: number;
  /** Requests per second. */
  readonly rate: number;
  /** Number of requests; sequences run from 0 to `count` - 1. */
  readonly count: number;
}

/** A schedule of `rate` requests per second for `duration` milliseconds; the first is due at `start`. */
export function loadSchedule(start: number, rate: number, duration: number): LoadSchedule {
  // Rounded first: 0.1 s at 30/s is 3 requests, not the 4 that 3.0000000000000004 would give.
  return { start, rate, count: Math.ceil(Math.round(rate * duration * 1e6) / 1e9) };
}

/** Returns the due time of request `sequence`, computed from the start so that rounding errors do not add up. */
export function dueAt(schedule: LoadSchedule, sequence: number): number {
  return schedule.start + (sequence * 1000) / schedule.rate;
}

/** Returns the number of requests due at `now`, counted from the first. */
export function dueCount(schedule: LoadSchedule, now: number): number {
  if (now < schedule.start) return 0;
  const elapsed = Math.floor(((now - schedule.start) * schedule.rate) / 1000 + 1e-9);
  return Math.min(schedule.count, elapsed + 1);
}

/** An open loop that runs in this process. */
export interface LoadLoop {
  /** Resolves when the last request is done. Never rejects. */
  readonly finished: Promise<void>;
  /** Sends the requests due by now, and no later ones. Requests in flight finish. */
  stop(): void;
}

/** Starts an open loop of HTTP requests, or of TCP connections to echo servers (`tcp://`), from this process's network namespace, and reports each result. */
export function startLoadLoop(options: LoadProgramOptions, report: (result: LoadResult) => void): LoadLoop {
  const request = requestOf(options);
  const schedule = loadSchedule(performance.now(), options.rate, options.duration);
  const inFlight = new Set<Promise<void>>();
  const finished = Promise.withResolvers<void>();
  let sent = 0;
  let isStopped = false;
  let timer: NodeJS.Timeout | undefined;

  const send = async (sequence: number): Promise<void> => {
    const sentAt = wall(performance.now());
    const result = await probe(request);
    report({
      sequence,
      scheduledAt: wall(dueAt(schedule, sequence)),
      sentAt,
      doneAt: wall(performance.now()),
      outcome: outcomeOf(result, request),
      answeredBy: result.status === 'answered' ? result.by : undefined,
      httpStatus: result.status === 'answered' ? result.httpStatus : undefined,
    });
  };
  const finish = (): void => void Promise.all(inFlight).then(() => finished.resolve());
  /** Sends all due requests, late ones included, then sleeps until the next one. */
  const tick = (): void => {
    const due = dueCount(schedule, performance.now());
    for (; sent < due; sent++) {
      const running = send(sent).finally(() => inFlight.delete(running));
      inFlight.add(running);
    }
    if (isStopped) return;
    if (sent < schedule.count) timer = setTimeout(tick, Math.max(0, dueAt(schedule, sent) - performance.now()));
    else finish();
  };
  tick();
  return {
    finished: finished.promise,
    stop: () => {
      if (isStopped) return;
      isStopped = true;
      clearTimeout(timer);
      tick(); // also sends requests that became due while this process had no CPU time
      finish();
    },
  };
}

function requestOf({ url, timeout }: LoadProgramOptions): ProbeRequest {
  const { protocol, hostname, port, pathname, search } = new URL(url);
  return {
    protocol: protocol === 'tcp:' ? 'tcp' : 'http',
    address: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: port === '' ? 80 : Number(port),
    path: `${pathname}${search}`,
    timeout,
  };
}

function outcomeOf(result: ProbeResult, { protocol }: ProbeRequest): LoadOutcome {
  if (result.status !== 'answered') return result.status;
  if (protocol === 'tcp') return 'answered';
  const status = result.httpStatus ?? 0;
  return status >= 200 && status < 300 ? 'answered' : 'error';
}

function wall(monotonic: number): Millis {
  return (performance.timeOrigin + monotonic) as Millis; // not by `millis`: the programs import no other package
}

/** Results of a load so far, for any number of readers. */
export class LoadResults {
  readonly #results: LoadResult[] = [];
  /** Resolved, and replaced, on every change; readers wait for it. */
  #change = Promise.withResolvers<void>();
  #isFinished = false;

  get count(): number {
    return this.#results.length;
  }

  get isFinished(): boolean {
    return this.#isFinished;
  }

  /** Resolves at the next result or at the end. */
  get change(): Promise<void> {
    return this.#change.promise;
  }

  /** Returns the results from index `from` on, in order of completion. */
  since(from: number): readonly LoadResult[] {
    return this.#results.slice(from);
  }

  add(results: readonly LoadResult[]): void {
    this.#results.push(...results);
    this.#announce();
  }

  /** Marks the results as complete. */
  finish(): void {
    this.#isFinished = true;
    this.#announce();
  }

  /** Returns all results, ordered by sequence. */
  inOrder(): readonly LoadResult[] {
    return this.#results.toSorted((a, b) => a.sequence - b.sequence);
  }

  /** Yields all results in order of completion as they arrive; ends or throws as `finished` does. */
  async *read(finished: Promise<unknown>): AsyncGenerator<LoadResult, void> {
    for (let next = 0; ;) {
      const { change } = this;
      const result = this.#results[next];
      if (result !== undefined) {
        next += 1;
        yield result;
      } else if (this.#isFinished) {
        await finished;
        return;
      } else {
        await change;
      }
    }
  }

  #announce(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers();
  }
}
