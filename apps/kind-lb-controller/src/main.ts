import { seconds, systemClock } from '@switchyard/core';
import { createCommandRunner, createJsonLogger, runApp } from '@switchyard/host';
import { type Config, parseConfig } from './config/config.ts';
import { runController } from './controller/run-controller.ts';
import { profilesCommand } from './health-profile/profiles-command.ts';

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

await runApp({
  name: 'switchyard-lb',
  exitGrace: seconds(8),
  main: async (signal) => {
    const [command, ...rest] = process.argv.slice(2);
    if (command === 'profiles') process.stdout.write(profilesCommand(rest));
    else await main(parseConfig(process.argv.slice(2)), signal);
  },
});
