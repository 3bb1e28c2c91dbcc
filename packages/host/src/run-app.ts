import { isExpected, messageOf, type Millis } from '@switchyard/core';
import { closeSync, constants, fstatSync, ftruncateSync, openSync, writeSync } from 'node:fs';

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
  if (!isExpected(error) && error instanceof Error) return error.stack ?? error.message;
  return messageOf(error)
    .trim()
    .replaceAll(/\s*\n\s*/g, ' | ');
}

/** kubelet's limit of a termination message. */
const maxBytes = 4096;

/**
 * Replaces the content of kubelet's `terminationMessagePath` file with the reason why this process ends; `kubectl describe pod`
 * shows it. Writes at most 4,096 bytes. Does nothing if the file is missing, not regular or not writable, as outside a pod.
 */
export function writeTerminationMessage(file: string, text: string): void {
  try {
    const fd = openSync(file, constants.O_WRONLY | constants.O_NONBLOCK);
    try {
      if (fstatSync(fd).isFile()) replaceContent(fd, text);
    } finally {
      closeSync(fd);
    }
  } catch {
    // stderr has the same text.
  }
}

function replaceContent(fd: number, text: string): void {
  const bytes = new Uint8Array(maxBytes);
  const { written } = new TextEncoder().encodeInto(text, bytes); // leaves out a character that does not fit whole
  ftruncateSync(fd);
  writeSync(fd, bytes, 0, written);
}
