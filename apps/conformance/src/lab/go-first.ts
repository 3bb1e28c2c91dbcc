import { writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';

/** The highest priority of a process without real-time scheduling. */
const first = -20;

/**
 * Lets a process that was just started, and all it starts, go before whatever else wants this machine's processors, so that a
 * measured time is its own. Where a machine does not allow it the time is only less steady.
 */
export function goFirst(pid: number): void {
  attempt(() => setPriority(pid, first));
  // With automatic groups, priorities count within a session only; each program of a lab is one of its own.
  attempt(() => writeFileSync(`/proc/${pid}/autogroup`, String(first)));
}

function attempt(work: () => void): void {
  try {
    work();
  } catch {
    // no right to, no such file, or the process has ended
  }
}
