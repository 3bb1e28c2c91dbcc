import type { LogSink } from './log-level.ts';
import { steadyOutput } from './steady-output.ts';

/** Writes lines to standard error at once. Calls `onLost` afterwards with the number of dropped lines and the cause. */
export function stderrSink(onLost: (count: number, error: Error) => void): LogSink {
  const output = steadyOutput({ fd: 2, onLost });
  process.once('exit', () => output.flush());
  return output;
}
