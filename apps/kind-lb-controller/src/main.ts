import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { seconds, systemClock } from '@switchyard/core';
import { createCommandRunner, createLogger, runApp } from '@switchyard/host';
import { runCheck } from './check/check-command.ts';
import { type Config, parseConfig } from './config/config.ts';
import { runController } from './controller/run-controller.ts';
import { profilesCommand } from './health-profile/profiles-command.ts';

async function main(config: Config, signal: AbortSignal): Promise<void> {
  const write = (text: string): void => void process.stdout.write(text);
  if (config.kind === 'help') return write(config.text);
  if (config.kind === 'profiles') return write(profilesCommand(config.args));
  if (config.kind === 'check') {
    process.exitCode = await runCheck(config.args, { write, env: process.env, clock: systemClock }, signal);
    return;
  }
  const log = createLogger({ format: 'json', level: config.logLevel });
  // Debian keeps haproxy and ip where ordinary users' PATH does not look.
  process.env['PATH'] = `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin`;
  const here = hostname();
  const host = {
    clock: systemClock,
    random: Math.random,
    log,
    runner: createCommandRunner(),
    hostname: here,
    identity: `${here}_${randomUUID()}`,
  };
  try {
    await runController(config, host, signal);
  } finally {
    if (signal.aborted) log.info('stopped', { reason: String(signal.reason) });
  }
}

await runApp({
  name: 'switchyard-lb',
  exitGrace: seconds(8),
  main: async (signal) => main(parseConfig(process.argv.slice(2)), signal),
});
