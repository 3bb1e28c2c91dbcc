import type { Millis } from '@switchyard/core';
import { dueAt, dueCount, loadSchedule } from './load-schedule.ts';
import type { LoadOutcome, LoadResult } from './load-types.ts';
import type { LoadProgramOptions } from './load.ts';
import { probe } from './probe.ts';
import type { ProbeRequest, ProbeResult } from './probe-types.ts';

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
