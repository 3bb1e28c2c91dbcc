/**
 * Open-loop HTTP load from the namespace it runs in. The only argument is a `LoadProgramOptions` as JSON. Each finished
 * request is one JSON line on standard output and, if there is an IPC channel, one message. SIGTERM, or the end of
 * the channel, stops the schedule; requests in flight are still finished.
 */
import { dueAt, dueCount, loadSchedule } from '../load-schedule.ts';
import type { LoadOutcome } from '../load-types.ts';
import type { LoadMessage, LoadProgramOptions } from '../load.ts';
import { probe } from '../probe.ts';
import type { ProbeRequest, ProbeResult } from '../probe-types.ts';

const options = JSON.parse(process.argv[2] ?? '{}') as LoadProgramOptions;
const { hostname, port, pathname, search } = new URL(options.url);
const request: ProbeRequest = {
  protocol: 'http',
  address: hostname.replace(/^\[(.*)\]$/, '$1'),
  port: port === '' ? 80 : Number(port),
  path: `${pathname}${search}`,
  timeout: options.timeout,
};
const schedule = loadSchedule(performance.now(), options.rate, options.duration);
let sent = 0;
let isStopped = false;
let timer: NodeJS.Timeout | undefined;
const inFlight = new Set<Promise<void>>();

process.once('SIGTERM', stop);
process.once('disconnect', stop);
tick();

/** Sends all that is due, late ones too, then sleeps until the next is. */
function tick(): void {
  const due = dueCount(schedule, performance.now());
  for (; sent < due; sent++) {
    const running = send(sent).finally(() => inFlight.delete(running));
    inFlight.add(running);
  }
  if (isStopped) return;
  if (sent < schedule.count) {
    timer = setTimeout(tick, Math.max(0, dueAt(schedule, sent) - performance.now()));
  } else {
    void finish();
  }
}

function stop(): void {
  if (isStopped) return;
  isStopped = true;
  clearTimeout(timer);
  void finish();
}

async function finish(): Promise<void> {
  await Promise.all(inFlight);
  if (process.connected) process.disconnect();
}

async function send(sequence: number): Promise<void> {
  const sentAt = wall(performance.now());
  const result = await probe(request);
  const message: LoadMessage = {
    sequence,
    scheduledAt: wall(dueAt(schedule, sequence)),
    sentAt,
    doneAt: wall(performance.now()),
    outcome: outcomeOf(result),
    ...(result.status === 'answered' ? { answeredBy: result.by, httpStatus: result.httpStatus } : {}),
  };
  process.stdout.write(`${JSON.stringify(message)}\n`);
  if (process.connected) process.send?.(message);
}

function outcomeOf(result: ProbeResult): LoadOutcome {
  if (result.status !== 'answered') return result.status;
  const status = result.httpStatus ?? 0;
  return status >= 200 && status < 300 ? 'answered' : 'error';
}

function wall(monotonic: number): number {
  return performance.timeOrigin + monotonic;
}
