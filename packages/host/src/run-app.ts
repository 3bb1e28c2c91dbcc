import { isExpected, messageOf, type Millis } from '@switchyard/core';

/** A program that runs until SIGTERM or SIGINT. */
export interface App {
  /** Prefix of each error on stderr. */
  readonly name: string;
  /** Maximum time from a stop signal to the end of the process; `process.exit` ends it then. */
  readonly exitGrace: Millis;
  /** `signal` aborts with the signal's name on SIGTERM and SIGINT. Rejections after that are ignored. */
  readonly main: (signal: AbortSignal) => Promise<void>;
  /** Reports a failure elsewhere after it was printed to stderr. Never rejects. */
  readonly onFailure?: (failure: AppFailure) => Promise<void>;
}

/** Failure of a program that received no stop signal. */
export interface AppFailure {
  readonly error: unknown;
  /** One line for what an operator can repair; a stack for a defect. */
  readonly text: string;
}

/**
 * Runs an app as this process. A rejection is printed to stderr and gives exit code 1; a stop signal gives 0. Signals after the
 * first are ignored.
 */
export async function runApp({ name, exitGrace, main, onFailure }: App): Promise<void> {
  const stop = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    // Never removed: signal-exit, which some libraries use to end child processes, kills this process by a signal that has no other
    // listener. A `once` listener would already be removed.
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

/** Returns one line for a failure that an operator can repair, a stack for a defect. */
export function failureText(error: unknown): string {
  return !isExpected(error) && error instanceof Error ? (error.stack ?? error.message) : oneLine(error);
}

function oneLine(error: unknown): string {
  const message = messageOf(error);
  return message.trim().replaceAll(/\s*\n\s*/g, ' | ');
}
