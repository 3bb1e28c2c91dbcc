import { DataplaneError, InvariantError, systemClock } from '@switchyard/core';
import { createCommandRunner, createJsonLogger } from '@switchyard/host';
import { type Config, parseConfig } from './config.ts';
import { runController } from './run-controller.ts';

/** After a stop the process ends by itself; this long after it, without being asked. */
const exitGraceMs = 8000;

async function main(config: Config, signal: AbortSignal): Promise<void> {
  if (config.kind === 'help') {
    process.stdout.write(config.text);
    return;
  }
  const log = createJsonLogger(config.logLevel);
  // Debian keeps haproxy and ip where ordinary users' PATH does not look.
  process.env['PATH'] = `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin`;
  const host = { clock: systemClock, random: Math.random, log, runner: createCommandRunner() };
  await runController(config, host, signal);
  log.info('stopped', { reason: String(signal.reason), isHaproxyKept: config.isKeptOnExit });
}

/** One line for what an operator can repair; a stack for what we must. */
function report(error: unknown): void {
  const isOurs = !(error instanceof DataplaneError) || error instanceof InvariantError;
  const text = isOurs && error instanceof Error ? (error.stack ?? error.message) : oneLine(error);
  process.stderr.write(`switchyard-lb: ${text}\n`);
}

function oneLine(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.trim().replaceAll(/\s*\n\s*/g, ' | ');
}

const stop = new AbortController();
for (const name of ['SIGTERM', 'SIGINT'] as const) {
  process.once(name, () => {
    stop.abort(name);
    setTimeout(() => process.exit(0), exitGraceMs).unref();
  });
}
try {
  await main(parseConfig(process.argv.slice(2)), stop.signal);
} catch (error) {
  if (!stop.signal.aborted) {
    report(error);
    process.exitCode = 1;
  }
}
