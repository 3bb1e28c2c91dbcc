import { HostError, type Millis, millis, UsageError } from '@switchyard/core';
import type { LabHost, LabProcess } from './lab.ts';
import { LoadResults } from './load-loop.ts';
import { nodeProgram } from './program-path.ts';

/** Open-loop load: request n is due at start + n / rate, however slow the answers are. */
export interface LoadOptions {
  /**
   * `http://`: an address to GET; a new connection for each request. `tcp://HOST:PORT`: a new connection to an echo server,
   * answered when the echo object has arrived. IPv6 in brackets.
   */
  readonly url: string;
  /** Requests per second, up to 5000. Default 20. */
  readonly rate?: number;
  /** Time limit of one request from its sending. Default 500 ms. */
  readonly timeout?: Millis;
  /** Time during which requests are due; at most an hour. */
  readonly duration: Millis;
}

/** Outcome of a request. `error`: an HTTP status other than 2xx (never with `tcp://`). Only `answered` counts as served. */
export type LoadOutcome = 'answered' | 'timeout' | 'dropped' | 'refused' | 'reset' | 'empty' | 'unreachable' | 'error';

/** One request; times are wall-clock milliseconds with fractions. */
export interface LoadResult {
  /** Counts from 0. */
  readonly sequence: number;
  /** Due time, independent of earlier answers. */
  readonly scheduledAt: Millis;
  readonly sentAt: Millis;
  readonly doneAt: Millis;
  readonly outcome: LoadOutcome;
  /** Pod that answered; undefined without an answer of an echo server. */
  readonly answeredBy: string | undefined;
  readonly httpStatus: number | undefined;
}

/** A running load. Iterating yields every result in the order of completion, from the first on, to any number of readers. */
export interface LoadRun extends AsyncIterable<LoadResult>, AsyncDisposable {
  /** All results, ordered by sequence, when the last request is done. Rejects if the generator failed. */
  readonly finished: Promise<readonly LoadResult[]>;
  /** The generator's process. */
  readonly pid: number;
  /** The file with one JSON line per request. */
  readonly logFile: string;
  /** Sends no more requests, waits for those in flight, and returns all results. */
  stop(): Promise<readonly LoadResult[]>;
}

/** Argument of the load-generator program; times in milliseconds. */
export interface LoadProgramOptions {
  readonly url: string;
  readonly rate: number;
  readonly timeout: number;
  readonly duration: number;
}

const maxRate = 5000;
const maxDuration = 3_600_000;

/** Starts an open loop in `host`'s namespace, as a process of its own. The first request is sent about 0.1 s later. */
export function startLoad(host: LabHost, options: LoadOptions): LoadRun {
  const rate = options.rate ?? 20;
  if (!(rate > 0 && rate <= maxRate))
    throw new UsageError('load.rate', `rate must be above 0 and at most ${maxRate}/s, not ${rate}`);
  if (!(options.duration > 0 && options.duration <= maxDuration)) {
    throw new UsageError(
      'load.duration',
      `duration must be above 0 and at most ${maxDuration} ms, not ${options.duration}`,
    );
  }
  const { url, duration, timeout = 500 } = options;
  if (!/^(http|tcp):\/\//.test(url)) throw new UsageError('load.url', `neither an http nor a tcp URL: ${url}`);
  const argument = JSON.stringify({ url, rate, timeout, duration } satisfies LoadProgramOptions);
  const args = [...nodeProgram('load-generator'), argument];
  return followGenerator(host.spawn(process.execPath, args, { ipc: true, logName: 'load' }));
}

function followGenerator({ child, ended, pid, logFile, stop }: LabProcess): LoadRun {
  const results = new LoadResults();
  child.on('message', (message) => results.add([message as LoadResult]));
  // The channel closes after the last message was received; the exit may be seen before that.
  const closed = new Promise<void>((resolve) => child.once('disconnect', resolve));
  const finished = Promise.all([ended, closed]).then(([status]) => {
    results.finish();
    if (status !== 0) throw new HostError('load.died', `the load generator ended with ${status}; see ${logFile}`);
    return results.inOrder();
  });
  finished.catch(() => undefined); // callers await `finished` themselves
  return {
    finished,
    pid,
    logFile,
    stop: () => {
      if (!results.isFinished) child.kill('SIGTERM');
      return finished;
    },
    [Symbol.asyncIterator]: () => results.read(finished),
    [Symbol.asyncDispose]: async () => {
      await stop(millis(0));
      await finished.catch(() => undefined);
    },
  };
}
