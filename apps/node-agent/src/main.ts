import { httpListener, noopMetrics, seconds, systemClock } from '@switchyard/core';
import {
  createCommandRunner,
  createJsonLogger,
  hostIpFamilies,
  nodeAddresses,
  releaseMemoryLater,
  runApp,
} from '@switchyard/host';
import { runAgent } from './agent.ts';
import { openBackends } from './backends.ts';
import { type Config, parseConfig } from './config.ts';
import { helpText } from './flags.ts';
import { openSource } from './open-source.ts';
import { version } from './version.ts';

/** By then the cluster was listed and applied. */
const startUpMs = 10_000;

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
  const { nodeName } = config;
  const needs = { nodeName, clock: systemClock, random: Math.random, logger };
  const source = await openSource(config.source, needs);
  const backends = await openBackends(backendHost, ipFamilies, signal);
  logger.info('starting', { version, pid: process.pid, nodeName, source: config.source.kind, ipFamilies });
  const host = {
    clock: systemClock,
    logger,
    metrics: noopMetrics,
    listener: httpListener,
    interfaceAddresses: () => nodeAddresses(),
    openFlowTable: async () => (await native()).createFlowTable({ clock: systemClock }),
    addressChanges: async (stop: AbortSignal) => (await native()).addressChanges({ clock: systemClock }, stop),
  };
  releaseMemoryLater(startUpMs);
  try {
    await runAgent({ config, source, backends, host }, signal);
  } finally {
    for (const backend of backends) await backend[Symbol.asyncDispose]();
  }
  logger.info('stopped, forwarding stays in place', { reason: String(signal.reason) });
}

function print(text: string): void {
  process.stdout.write(text);
}

await runApp({
  name: 'switchyard-agent',
  exitGrace: seconds(5),
  main: async (signal) => main(parseConfig(process.argv.slice(2)), signal),
});
