/**
 * Open-loop load (HTTP, or TCP connections to echo servers) from the namespace it runs in. The only argument is a `LoadProgramOptions` as JSON. Each finished
 * request is one JSON line on standard output and, if there is an IPC channel, one message. SIGTERM, or the end of
 * the channel, stops the schedule; requests in flight are still finished.
 */
import { startLoadLoop } from '../load-loop.ts';
import type { LoadProgramOptions } from '../load.ts';

const options = JSON.parse(process.argv[2] ?? '{}') as LoadProgramOptions;
const loop = startLoadLoop(options, (message) => {
  process.stdout.write(`${JSON.stringify(message)}\n`);
  if (process.connected) process.send?.(message);
});
process.once('SIGTERM', () => loop.stop());
process.once('disconnect', () => loop.stop());
await loop.finished;
if (process.connected) process.disconnect();
