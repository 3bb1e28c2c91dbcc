import { mkdir, rmdir } from 'node:fs/promises';
import { ConfigError, messageOf } from '@switchyard/core';
import type { ClustersConfig, DockerConfig, ProcessConfig, RunConfig } from '../config/run-config.ts';
import { KindDiscovery } from '../docker/discovery.ts';
import { DockerCli } from '../docker/docker-cli.ts';
import { DockerRuntime } from '../docker/docker-runtime.ts';
import { EngineEvents } from '../docker/engine-events.ts';
import { checkHaproxy } from '../haproxy/check-haproxy.ts';
import { newInterfaceAddresses } from '../kernel/interface-addresses.ts';
import { assertNotMachines } from '../kernel/own-namespace.ts';
import { newKernelForwarder } from '../kernel/kernel-forwarder.ts';
import { newTargetRoutes } from '../kernel/target-routes.ts';
import { openProcessRuntime } from '../runtime/process-runtime.ts';
import type { LoadBalancerRuntime, RuntimeListener } from '../runtime/runtime.ts';
import { holdRunDirectory } from '../runtime/single-instance.ts';
import type { ClusterDiscovery } from './cluster-discovery.ts';
import type { Host } from './host.ts';

/** Host and listener of a runtime. */
export interface RuntimeNeeds {
  readonly host: Host;
  readonly listener: RuntimeListener;
}

/** A runtime, and where clusters can be found: undefined where only a kubeconfig says which. */
export interface OpenedRuntime {
  readonly runtime: LoadBalancerRuntime;
  readonly discovery: ClusterDiscovery | undefined;
}

/** Opens the configured runtime; `stack` disposes its resources. Rejects with `ConfigError` when it cannot be opened. */
export function openRuntime(
  config: RunConfig,
  needs: RuntimeNeeds,
  stack: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<OpenedRuntime> {
  const { runtime } = config;
  if (runtime.kind === 'process') return openProcess(runtime, needs, stack, signal);
  return Promise.resolve(openDocker({ ...config, runtime }, needs, stack));
}

async function openProcess(
  config: ProcessConfig,
  { host, listener }: RuntimeNeeds,
  stack: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<OpenedRuntime> {
  const { runner, clock, log } = host;
  const { source, interfaceName, netns, runDirectory } = config;
  await checkHaproxy(config.haproxy, runner, signal);
  if (interfaceName !== undefined) await assertNotMachines(netns);
  await makeRunDirectory(runDirectory);
  stack.defer(() => rmdir(runDirectory).catch(() => undefined)); // stays while a file is in it
  stack.use(await holdRunDirectory(runDirectory));
  const kernel =
    interfaceName === undefined
      ? undefined
      : newKernelForwarder({ runner, netns, interfaceName, forwarding: 'set', clock, logger: log });
  const interfaceAddresses =
    interfaceName === undefined || source.kind !== 'pool'
      ? undefined
      : newInterfaceAddresses({ runner, interfaceName, netns, pool: source.cidrs });
  const program = config.haproxy;
  const runtime = await openProcessRuntime({
    ...config,
    program,
    interfaceAddresses,
    routes: interfaceName === undefined ? undefined : newTargetRoutes({ runner, interfaceName, netns }),
    kernel,
    listener,
    runner,
    clock,
    log,
  });
  return { runtime: stack.use(runtime), discovery: undefined };
}

function openDocker(
  { runtime: config, clusters, eventLog }: Omit<RunConfig, 'runtime'> & { readonly runtime: DockerConfig },
  { host, listener }: RuntimeNeeds,
  stack: AsyncDisposableStack,
): OpenedRuntime {
  const { clock, random, log, hostname } = host;
  const { network, image, pool, publishOn } = config;
  const cli = new DockerCli({ program: config.engine });
  const events = stack.use(new EngineEvents({ cli, clock, random, log }));
  const isDiscovered = clusters.kind === 'discovery';
  const followsTargets = eventLog !== undefined;
  const places = { network, image, pool, publishOn, isDiscovered, followsTargets };
  const runtime = stack.use(new DockerRuntime({ cli, events, ...places, clock, log, listener }));
  const found = { cli, events, network, clusters: namesOf(clusters), ownHostname: hostname, clock, log };
  return { runtime, discovery: isDiscovered ? new KindDiscovery(found) : undefined };
}

function namesOf(clusters: ClustersConfig): readonly string[] {
  return clusters.kind === 'discovery' ? clusters.names : [clusters.name];
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
