import { isExpected, messageOf, type Millis } from '@switchyard/core';

/** A program that runs until it is told to stop. */
export interface App {
  /** Stands before each error on stderr. */
  readonly name: string;
  /** After a stop the process ends by itself; this long after it, without being asked. */
  readonly exitGrace: Millis;
  /** `signal` aborts with the signal's name on SIGTERM and SIGINT. What it rejects with after that is of no interest. */
  readonly main: (signal: AbortSignal) => Promise<void>;
  /** Reports a failure elsewhere, after it was printed: what `main` rejected with, and the text on stderr. Never rejects. */
  readonly onFailure?: (failure: AppFailure) => Promise<void>;
}

/** Why a program ends that was not told to stop. */
export interface AppFailure {
  readonly error: unknown;
  /** One line for what an operator can repair; a stack for a defect. */
  readonly text: string;
}

/**
 * Runs an app as this process: a rejection is printed to stderr and makes the exit code 1; a stop is 0. Signals after the first one
 * change nothing.
 */
export async function runApp({ name, exitGrace, main, onFailure }: App): Promise<void> {
  const stop = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    // Never taken away again: libraries that end child processes at our exit (signal-exit) kill this process by a signal for which
    // nobody but them listens, and a listener that hears once is gone by then.
    process.on(signal, () => {
      if (stop.signal.aborted) return;
      stop.abort(signal);
      setTimeout(() => process.exit(0), exitGrace).unref();
    });
  }
  try {
    await main(stop.signal);
  } catch (error) {
    if (stop.signal.aborted) return;
    const text = failureText(error);
    process.stderr.write(`${name}: ${text}\n`);
    process.exitCode = 1;
    await onFailure?.({ error, text });
  }
}

/** One line for what an operator can repair; a stack for what we must. */
export function failureText(error: unknown): string {
  return !isExpected(error) && error instanceof Error ? (error.stack ?? error.message) : oneLine(error);
}

function oneLine(error: unknown): string {
  const message = messageOf(error);
  return message.trim().replaceAll(/\s*\n\s*/g, ' | ');
}
