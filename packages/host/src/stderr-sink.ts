import type { LogSink } from './log-level.ts';
import { steadyOutput } from './steady-output.ts';

/** Lines to standard error, at once; `onLost` is told afterwards how many could not be written, and why. */
export function stderrSink(onLost: (count: number, error: Error) => void): LogSink {
  const output = steadyOutput({ fd: 2, onLost });
  process.once('exit', () => output.flush());
  return output;
}
