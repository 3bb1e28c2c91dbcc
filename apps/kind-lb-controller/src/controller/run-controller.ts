import { mkdir, rmdir } from 'node:fs/promises';
import { type Clock, ConfigError, type Logger, messageOf, type Random } from '@switchyard/core';
import { kubeconfigConnection, newApiClient } from '@switchyard/core/kubernetes';
import type { CommandRunner } from '@switchyard/host';
import type { RunConfig } from '../config/config.ts';
import { Controller } from './controller.ts';
import { type EventLog, openEventLog, serverEvent } from '../haproxy/event-log.ts';
import { assertNotMachines, type InterfaceAddresses, newInterfaceAddresses } from '../kernel/interface-addresses.ts';
import { openProcessRuntime } from '../runtime/process-runtime.ts';
import type { TargetChange } from '../runtime/runtime.ts';
import { checkHaproxy } from '../haproxy/check-haproxy.ts';
import { holdRunDirectory } from '../runtime/single-instance.ts';
import { watchCluster } from '../cluster/watch-cluster.ts';
import { newStatusWriter } from './write-status.ts';

/** This machine, as the controller sees it. */
export interface Host {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly runner: CommandRunner;
}

/** Runs until aborted, then stops HAProxy unless it is to be kept. Rejects with `ConfigError` if it cannot begin. */
export async function runController(config: RunConfig, host: Host, signal: AbortSignal): Promise<void> {
  const { clock, random, log, runner } = host;
  await using stack = new AsyncDisposableStack();
  const connection = await kubeconfigConnection(config.kubeconfig, clock);
  await checkHaproxy(config.haproxy, runner, signal);
  const interfaceAddresses = await interfaceOf(config, runner);
  const eventLog = config.eventLog === undefined ? undefined : stack.use(openEventLog(config.eventLog));
  await makeRunDirectory(config.runDirectory);
  stack.defer(() => rmdir(config.runDirectory).catch(() => undefined)); // stays while a file is in it
  stack.use(await holdRunDirectory(config.runDirectory));
  const client = stack.use(newApiClient(connection, { clock, userAgent: 'switchyard-lb' }));
  const runtime = stack.use(
    await openProcessRuntime({
      runDirectory: config.runDirectory,
      program: config.haproxy,
      netns: config.netns,
      isKeptOnExit: config.isKeptOnExit,
      source: config.source,
      interfaceAddresses,
      routes: undefined,
      kernel: undefined,
      runner,
      clock,
      log,
      listener: {
        onDisturbed: () => controller.poke(),
        onTargetChange: (change) => tell(change, log, eventLog),
      },
    }),
  );
  const controller = new Controller({
    source: config.source,
    profile: config.profile,
    runtime,
    statusWriter: newStatusWriter({ connection, client, clock }),
    clock,
    log,
  });
  const { interval, fall, rise } = config.profile;
  log.info('starting', {
    pid: process.pid,
    server: connection.url.href,
    runDirectory: config.runDirectory,
    interval,
    fall,
    rise,
  });
  const watching = watchCluster({ client, clock, random, log, onChange: (view) => controller.observe(view) }, signal);
  await Promise.all([
    controller.run(signal),
    watching.catch((error: unknown) => {
      if (!signal.aborted) throw error;
    }),
  ]);
}

function tell(change: TargetChange, log: Logger, eventLog: EventLog | undefined): void {
  const event = serverEvent(change);
  eventLog?.append(event);
  const { service, node, port, ipFamily, reason } = event;
  log.info(change.isUp ? 'node is UP' : 'node is DOWN', { service, port, ipFamily, node, reason, at: event.time });
}

async function interfaceOf(config: RunConfig, runner: CommandRunner): Promise<InterfaceAddresses | undefined> {
  const { source, interfaceName, netns } = config;
  if (source.kind !== 'pool' || interfaceName === undefined) return undefined;
  await assertNotMachines(netns);
  return newInterfaceAddresses({ runner, interfaceName, netns, pool: source.cidrs });
}

async function makeRunDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
  } catch (cause) {
    const reason = messageOf(cause);
    throw new ConfigError(
      'lb.run-directory',
      `cannot make the run directory: ${reason}; give another --run-directory`,
      { cause },
    );
  }
}
