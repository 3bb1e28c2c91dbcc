import { cpus } from 'node:os';
import { createHttpListener } from '@switchyard/core/health';
import {
  asError,
  type EventRecorder,
  HostError,
  type IpFamily,
  noopEvents,
  seconds,
  systemClock,
} from '@switchyard/core';
import {
  type AppFailure,
  collectGarbage,
  createCommandRunner,
  createLogger,
  failureText,
  hostIpFamilies,
  kernelFiles,
  listenAddresses,
  type LeveledLogger,
  logLevelOf,
  nodeAddresses,
  preferLittleMemory,
  preferQuickStart,
  releaseMemoryAtRest,
  releaseMemoryLater,
  runApp,
  watchProcess,
  writeTerminationMessage,
} from '@switchyard/host';
import type { IptablesVariant } from '@switchyard/netfilter/iptables';
import { runAgent } from './agent.ts';
import type { AgentHost } from './agent-host.ts';
import { askCommand, isQuestion } from './ask/ask-command.ts';
import { type BackendHost, backendOf } from './backends.ts';
import { cleanUp, cleanUpFailed } from './cleanup/clean-up.ts';
import { ourVariant, removeLeftRules } from './cleanup/left-rules.ts';
import { kernelTables } from './cleanup/tables.ts';
import { removalText } from './cleanup/removal.ts';
import { refuseBesideUnreadyProxy } from './cleanup/kube-proxy.ts';
import {
  asksForCommand,
  type ClusterPlace,
  type Config,
  type DataplaneConfig,
  findPlace,
  loadConfig,
  type RunConfig,
} from './config.ts';
import { versionText, writeConfig } from './config/commands.ts';
import { ConfigWatch } from './config/config-follower.ts';
import { configzDocument, flagzValues } from './config/documents.ts';
import { helpText } from './config/flags/parse-flags.ts';
import { logNotes } from './config/notes.ts';
import { type ProxyMode, proxyModes } from './config/proxy-mode.ts';
import { modeRefusedEvent, reportFailure, terminationLogOf } from './events/agent-events.ts';
import type { EndpointViews } from './http/metrics-routes.ts';
import { tcpNetwork } from './localhost-node-ports/connections.ts';
import { createMetricsPage, type MetricsPage } from './metrics/metrics-page.ts';
import { agentIdentity, claimNode, refuseWhileRunning } from './host/one-agent.ts';
import { isTcpLiberal, setUpAfterChange, setUpHost } from './host/set-up-host.ts';
import { httpLimitsFor, proxyLimitsFor, readDescriptorLimit } from './host/descriptors.ts';
import { dumpModes } from './host/dump-text.ts';
import { mountBpffsForLater, mountNodeBpffs } from './host/node-bpffs.ts';
import { checkBackend, openBackends, type OpenDataplane } from './open-backends.ts';
import { openLastEvents, openSource } from './open-source.ts';
import { readAhead } from './read-ahead.ts';
import { version } from './version.ts';

const startTime = systemClock.now();
/** Whether this process has written the node's rules. */
let hasForwarded = false;

/** Loaded on demand: the agent must start without the addon. */
const native = () => import('@switchyard/native');
const netfilter = () => import('@switchyard/netfilter');

async function main(config: Config, signal: AbortSignal): Promise<void> {
  if (config.kind === 'help') return print(helpText());
  if (config.kind === 'version') return print(versionText(config.form));
  const logger = createLogger({ format: config.logFormat, level: config.logLevel });
  logNotes(config.notes, logger);
  if (config.kind === 'write') return writeConfig(config, logger);
  const ipFamilies = hostIpFamilies();
  // Standard output carries the answer and nothing else.
  const isCommand = config.kind === 'dump' || config.kind === 'cleanup';
  const backendLogger = isCommand ? createLogger({ format: config.logFormat, level: 'warn' }) : logger;
  const backendHost = backendHostOf(config, backendLogger);
  const { mode } = config;
  if (config.kind === 'dump') return print(await dump(config, { backendHost, ipFamilies }, signal));
  if (config.kind === 'cleanup') {
    await refuseWhileRunning(systemClock, signal);
    const kubeProxy = config.ofKubeProxyToo;
    if (!kubeProxy) await refuseBesideUnreadyProxy();
    const removal = await cleanUp({ backendHost, files: kernelFiles(), kubeProxy }, signal);
    print(removalText(removal));
    if (removal.failures.length > 0) throw cleanUpFailed(removal);
    return;
  }
  if (config.purpose === 'set-up') {
    await checkBackend({ mode, host: backendHost, ipFamilies }, signal);
    await prepareBpffs(config, logger);
    setUpHost(config, { files: kernelFiles(), cores: cpus().length, ipFamilies, logger, events: noopEvents });
    return logger.info('this host can run the dataplane; no rule was made', { mode, ipFamilies });
  }
  if (config.purpose === 'observe') {
    const { runObserver } = await import('./observer.ts');
    return runObserver({ config, ipFamilies, logger, startTime, random: Math.random }, signal);
  }
  await runUntilStopped({ config, backendHost, ipFamilies, logger }, signal);
  logger.info('stopped, forwarding stays in place', { reason: String(signal.reason) });
}

interface Run {
  readonly config: RunConfig;
  readonly backendHost: BackendHost;
  readonly ipFamilies: readonly IpFamily[];
  readonly logger: LeveledLogger;
}

function backendHostOf(config: DataplaneConfig, logger: LeveledLogger): BackendHost {
  const { iptables, ebpf, syncPeriod } = config;
  return {
    runner: createCommandRunner(),
    tables: kernelTables,
    logger,
    ...iptables,
    ...ebpf,
    syncPeriod,
    // Evaluated on demand: the kernel's setting exists only after conntrack was loaded.
    get tcpBeLiberal() {
      return config.tcpBeLiberal || isTcpLiberal(kernelFiles());
    },
  };
}

/** Without a mode it dumps all modes, also the iptables variant that a fresh node would not use. */
async function dump(
  { mode, ofEveryMode }: Extract<Config, { readonly kind: 'dump' }>,
  { backendHost, ipFamilies }: Pick<Run, 'backendHost' | 'ipFamilies'>,
  signal: AbortSignal,
): Promise<string> {
  const open = async (one: ProxyMode): Promise<OpenDataplane> => {
    const hasVariants = backendOf(one).detectVariant !== undefined;
    if (!ofEveryMode || !hasVariants) return openBackends({ mode: one, host: backendHost, ipFamilies }, signal);
    const variant = await ourVariant(backendHost, ipFamilies, signal);
    if (variant === undefined) throw new HostError('host.unusable', 'no rules of this agent are in iptables');
    return openBackends({ mode: one, host: { ...backendHost, variant }, ipFamilies }, signal);
  };
  return dumpModes(open, ofEveryMode ? proxyModes() : [mode], signal);
}

/** Refuses an unreadable configuration before it changes anything; probes the host while it lists the cluster. */
async function runUntilStopped(run: Run, signal: AbortSignal): Promise<void> {
  const { config, backendHost, ipFamilies, logger } = run;
  const { nodeName } = config;
  const metricsPage = createMetricsPage({ mode: config.mode, ipFamilies, clock: systemClock });
  const { metrics } = metricsPage;
  const needs = { nodeName, clock: systemClock, random: Math.random, logger, metricsPage };
  const opened = await openSource(config.source, needs);
  await using events = opened.events;
  await using _ = await claimNode(agentIdentity(nodeName, process.env), { clock: systemClock }, signal);
  const stop = new AbortController();
  const running = AbortSignal.any([signal, stop.signal]);
  const prepare = (): Promise<void> => prepareBpffs(config, logger);
  const opening = openBackends({ mode: config.mode, host: backendHost, ipFamilies, prepare }, running);
  const source = readAhead(opened.source, running);
  const follower = followConfig(run, { metrics, events });
  let changed: unknown;
  const following = follower.run(running).catch((error: unknown) => {
    changed = error;
    stop.abort(error);
  });
  try {
    using watched = watchProcess();
    metricsPage.addCollector(() => watched.collect());
    const { backends, variant } = await opening;
    // Only now, because the probe loads conntrack; before, a fresh node does not have its settings.
    const setUp = { files: kernelFiles(), cores: cpus().length, ipFamilies, logger, events };
    setUpHost(config, setUp);
    let before = config;
    follower.onChange(() => {
      const now = follower.current();
      setUpAfterChange(before, now, setUp);
      before = now;
    });
    const from = { source: config.source.kind, from: opened.from };
    const { mode } = config;
    logger.info('starting', { version, pid: process.pid, mode, nodeName, ...from, ipFamilies });
    const views: EndpointViews = {
      configz: () => configzDocument(follower.current().settings),
      flagz: () => flagzValues(config.flags, follower.current().settings),
      setVerbosity: (verbosity) => logger.setLevel(logLevelOf(verbosity)),
      process: { startTime, nodeVersion: process.version, version, commandLine: process.argv },
    };
    const host = { ...hostOf(run, metricsPage, variant), events, views, onApplied: await releaseFreedMemory() };
    preferQuickStart();
    await runAgent({ config, follower, source, contact: opened.contact, backends, host }, running);
    if (changed !== undefined) throw changed;
  } finally {
    stop.abort();
    await following;
    for (const backend of (await opening.catch(() => undefined))?.backends ?? []) await backend[Symbol.asyncDispose]();
  }
}

/** Mounts bpffs for a backend that pins objects there. The set-up mounts it in every mode, because a later mode change runs no set-up. */
async function prepareBpffs({ mode, ebpf, purpose }: RunConfig, logger: LeveledLogger): Promise<void> {
  const needsBpffs = backendOf(mode).needsBpffs === true;
  if (!needsBpffs && purpose !== 'set-up') return;
  const { isBpffs, mountBpffs } = await native();
  const machine = { files: kernelFiles(), pid: process.pid, isBpffs, mount: mountBpffs, logger };
  if (needsBpffs) mountNodeBpffs(ebpf.bpffs, machine);
  else mountBpffsForLater(ebpf.bpffs, machine);
}

/** Returns why this node cannot run the mode of a changed configuration; undefined if it can, or if the mode is unchanged. */
async function modeObstacle(
  { config, ipFamilies, logger }: Run,
  next: RunConfig,
  signal: AbortSignal,
): Promise<Error | undefined> {
  const { mode } = next;
  if (mode === config.mode) return undefined;
  try {
    await checkBackend({ mode, host: backendHostOf(next, logger), ipFamilies }, signal);
    await prepareBpffs(next, logger);
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    return asError(error);
  }
}

function hostOf(
  { config, backendHost, ipFamilies, logger }: Run,
  metricsPage: MetricsPage,
  variant: IptablesVariant | undefined,
): Omit<AgentHost, 'events' | 'views' | 'onApplied'> {
  const { metrics } = metricsPage;
  const { mode, kubeProxyRules } = config;
  const descriptors = readDescriptorLimit(kernelFiles());
  return {
    clock: systemClock,
    logger,
    metrics,
    metricsPage,
    listener: createHttpListener(httpLimitsFor(descriptors)),
    loopbackProxy: { network: tcpNetwork, limits: proxyLimitsFor(descriptors), random: Math.random },
    interfaceAddresses: () => nodeAddresses(),
    listenAddresses: () => listenAddresses(),
    packetCounts: async () => (await netfilter()).createPacketCounters().read(),
    openFlowTable: async () => (await netfilter()).createFlowTable({ clock: systemClock }),
    removeLeftRules: async (whose, stop) => {
      const wish = whose === 'ours' ? 'keep' : kubeProxyRules;
      const from = { mode, variant, kubeProxyRules: wish, backendHost, files: kernelFiles(), ipFamilies };
      const left = await removeLeftRules(from, stop);
      // The removal may have read tens of thousands of chains as text.
      if (left.ours.removed.length + left.kubeProxy.removed.length > 0) setImmediate(collectGarbage);
      return left;
    },
    // Listing and the first apply create more garbage than all later work.
    onForwarding: () => {
      hasForwarded = true;
      metrics.set('switchyard_start_to_forwarding_seconds', {}, systemClock.monotonic() / 1000);
      preferLittleMemory();
      setImmediate(collectGarbage);
    },
    addressChanges: async (stop) => (await native()).addressChanges({ clock: systemClock }, stop),
  };
}

/** Follows the configuration and applies its log level; the agent applies the other fields. */
function followConfig(run: Run, { metrics, events }: Pick<AgentHost, 'metrics' | 'events'>): ConfigWatch {
  const { config, logger } = run;
  const follower = new ConfigWatch({
    config,
    load: () => loadConfig(process.argv.slice(2)),
    clock: systemClock,
    logger,
    metrics,
    restartObstacle: (next, signal) => modeObstacle(run, next, signal),
    noteObstacle: (error) => events.record(modeRefusedEvent(config.nodeName, error)),
  });
  let { logLevel } = config;
  follower.onChange(() => {
    if (follower.current().logLevel === logLevel) return; // another one may have been set meanwhile, over HTTP
    logLevel = follower.current().logLevel;
    logger.setLevel(logLevel);
  });
  return follower;
}

/** Returns freed memory to the kernel after the start, and when many calls of the returned function are over. Needs the addon. */
async function releaseFreedMemory(): Promise<() => void> {
  const { trimMemory } = await native();
  const release = (): void => {
    try {
      trimMemory();
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
    }
  };
  releaseMemoryLater(release);
  return releaseMemoryAtRest(() => {
    collectGarbage();
    release();
  });
}

/** Prints the answer of a command. A reader that closes the pipe early, such as `head`, is no failure. */
function print(text: string): void {
  const onError = (error: NodeJS.ErrnoException): void => {
    if (error.code !== 'EPIPE') throw error;
  };
  if (process.stdout.listenerCount('error') === 0) process.stdout.on('error', onError);
  process.stdout.write(text);
}

const args = process.argv.slice(2);
const terminationLog = terminationLogOf(process.env);
/** The configuration; undefined before it is read, and if it is refused. */
let loaded: Config | undefined;

/** Reports a failure of the agent. Commands of operators report only by their exit, because they may run in the agent's container. */
async function report(failure: AppFailure): Promise<void> {
  if (isQuestion(args) || args[0] === 'drain-gate') return;
  if (loaded === undefined ? asksForCommand(args) : loaded.kind !== 'run') return;
  const run = loaded?.kind === 'run' ? loaded : undefined; // undefined: refused
  const place = run ?? (await findPlace(args));
  const logger = createLogger({ format: run?.logFormat ?? 'text', level: run?.logLevel ?? 'info' });
  const openEvents = (from: ClusterPlace): Promise<EventRecorder & AsyncDisposable> =>
    openLastEvents(from, { clock: systemClock, logger });
  await reportFailure(failure, { terminationLog, place, openEvents, hasForwarded });
}

/**
 * Runs the node agent: reads the command line, programs the node until a signal arrives, and sets the exit status. Add backends of
 * other repositories before, with `registerBackend`.
 */
export async function runAgentProgram(): Promise<void> {
  process.on('uncaughtExceptionMonitor', (error) => writeTerminationMessage(terminationLog, failureText(error)));
  await runApp({
    name: 'switchyard-agent',
    exitGrace: seconds(5),
    main: async (signal) => {
      if (args[0] === 'drain-gate') {
        const { gateCommand } = await import('./drain/gate-command.ts');
        return gateCommand(args.slice(1), { print, env: process.env, random: Math.random }, signal);
      }
      if (isQuestion(args)) {
        process.exitCode = await askCommand(args, { print, fetch }, signal);
        return;
      }
      readDescriptorLimit(kernelFiles()); // before anything else fails for lack of descriptors
      loaded = await loadConfig(args);
      await main(loaded, signal);
    },
    onFailure: report,
  });
}
