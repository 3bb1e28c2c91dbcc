import type { NftablesHost } from '@switchyard/backend-nftables';
import { HostError, httpListener, type IpFamily, type Logger, seconds, systemClock } from '@switchyard/core';
import {
  collectGarbage,
  createCommandRunner,
  createJsonLogger,
  hostIpFamilies,
  nodeAddresses,
  releaseMemoryLater,
  runApp,
  watchProcess,
} from '@switchyard/host';
import { runAgent } from './agent.ts';
import { openBackends } from './backends.ts';
import { type Config, parseConfig, type RunConfig } from './config.ts';
import { helpText } from './flags.ts';
import { createMetricsPage } from './metrics/metrics-page.ts';
import { openSource } from './open-source.ts';
import { readAhead } from './read-ahead.ts';
import { version } from './version.ts';

/** Loaded when it is needed: the agent must start without the addon. */
const native = () => import('@switchyard/native');

async function main(config: Config, signal: AbortSignal): Promise<void> {
  if (config.kind === 'help') return print(helpText());
  if (config.kind === 'version') return print(`switchyard-agent ${version}\n`);
  const logger = createJsonLogger(config.logLevel);
  const ipFamilies = hostIpFamilies();
  const backendHost = { runner: createCommandRunner(), transport: config.nftTransport, logger };
  if (config.kind !== 'run') {
    for (const backend of await openBackends(backendHost, ipFamilies, signal)) {
      if (config.kind === 'dump') print(await backend.dump(signal));
      else await backend.cleanup(signal);
      await backend[Symbol.asyncDispose]();
    }
    return;
  }
  await runUntilStopped({ config, backendHost, ipFamilies, logger }, signal);
  logger.info('stopped, forwarding stays in place', { reason: String(signal.reason) });
}

interface Run {
  readonly config: RunConfig;
  readonly backendHost: NftablesHost;
  readonly ipFamilies: readonly IpFamily[];
  readonly logger: Logger;
}

/** What the host can do is asked while the cluster is already being listed. */
async function runUntilStopped({ config, backendHost, ipFamilies, logger }: Run, signal: AbortSignal): Promise<void> {
  const stop = new AbortController();
  const running = AbortSignal.any([signal, stop.signal]);
  const opening = openBackends(backendHost, ipFamilies, running);
  opening.catch(() => undefined); // told below, unless the source is the first to fail
  try {
    const { nodeName } = config;
    const metricsPage = createMetricsPage({ ipFamilies, clock: systemClock });
    using watched = watchProcess();
    metricsPage.addCollector(() => watched.collect());
    const needs = { nodeName, clock: systemClock, random: Math.random, logger, metricsPage };
    const opened = await openSource(config.source, needs);
    await using events = opened.events;
    const source = readAhead(opened.source, running);
    const backends = await opening;
    logger.info('starting', { version, pid: process.pid, nodeName, source: config.source.kind, ipFamilies });
    const host = {
      clock: systemClock,
      logger,
      metrics: metricsPage.metrics,
      metricsPage,
      listener: httpListener,
      events,
      interfaceAddresses: () => nodeAddresses(),
      openFlowTable: async () => (await native()).createFlowTable({ clock: systemClock }),
      // Listing and the first apply leave more garbage than all that follows.
      onForwarding: () => {
        metricsPage.metrics.set('switchyard_start_to_forwarding_seconds', {}, systemClock.monotonic() / 1000);
        setImmediate(collectGarbage);
      },
      addressChanges: async (stop: AbortSignal) => (await native()).addressChanges({ clock: systemClock }, stop),
    };
    await releaseFreedMemory();
    await runAgent({ config, source, backends, host }, running);
  } finally {
    stop.abort();
    for (const backend of await opening.catch(() => [])) await backend[Symbol.asyncDispose]();
  }
}

/** Without the addon memory stays as it is. */
async function releaseFreedMemory(): Promise<void> {
  const { trimMemory } = await native();
  releaseMemoryLater(() => {
    try {
      trimMemory();
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
    }
  });
}

function print(text: string): void {
  process.stdout.off('error', ignoreClosedPipe).on('error', ignoreClosedPipe).write(text);
}

/** A reader that has seen enough, such as `head`, is no failure. */
function ignoreClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
}

await runApp({
  name: 'switchyard-agent',
  exitGrace: seconds(5),
  main: async (signal) => main(parseConfig(process.argv.slice(2)), signal),
});
