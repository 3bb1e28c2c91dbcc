import {
  type Clock,
  DataplaneError,
  HostError,
  type IpAddress,
  isEqual,
  type Logger,
  type Millis,
  seconds,
} from '@switchyard/core';
import type { CommandRunner } from '@switchyard/host';
import { ConfigurationFiles } from '../haproxy/configuration-files.ts';
import type { HaproxyFiles } from '../haproxy/haproxy-files.ts';
import { targetHealth } from '../haproxy/haproxy-health.ts';
import { type HaproxyMaster, waitForMaster } from '../haproxy/haproxy-master.ts';
import { needsKernel } from '../spec/kernel-ports.ts';
import { type HaproxyConfiguration, renderHaproxy } from '../haproxy/render-haproxy.ts';
import type { InterfaceAddresses } from '../kernel/interface-addresses.ts';
import type { KernelForwarder } from '../kernel/kernel-forwarder.ts';
import type { TargetRoutes } from '../kernel/target-routes.ts';
import { routesDuring } from '../runtime/routes-during.ts';
import { type AppliedState, readApplied, writeApplied } from './applied-state.ts';
import type { WorkerAnswer, WorkerRequest } from './protocol.ts';

/** The container that a worker works in. */
export interface WorkerHost {
  readonly files: HaproxyFiles;
  /** File of the last applied state. */
  readonly appliedFile: string;
  readonly program: string;
  readonly master: HaproxyMaster;
  readonly addresses: InterfaceAddresses;
  readonly routes: TargetRoutes;
  /** Opened only where the kernel has, or may have, anything to forward: that takes longer than all of HAProxy's part. */
  readonly openKernel: () => Promise<KernelForwarder>;
  /** The container's own addresses, where published ports arrive. */
  readonly ownAddresses: () => readonly IpAddress[];
  readonly runner: CommandRunner;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A container may have been started just now. */
const masterLimit: Millis = seconds(10);

/**
 * Carries out a request and returns the result. Killed at any point, it leaves a load balancer that works, as before or as
 * asked, and the next run completes. Only one at a time, see `lockWorkers`.
 */
export async function runWorker(request: WorkerRequest, host: WorkerHost, signal: AbortSignal): Promise<WorkerAnswer> {
  try {
    await waitForHaproxy(host, signal);
    return request.command === 'apply' ? await apply(request, host, signal) : await followHealth(host, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof DataplaneError)) throw error;
    return { status: 'failed', reason: 'HostRefused', message: error.message };
  }
}

/**
 * Waits for HAProxy before anything is read or changed. Until it answers, the run directory may hold files of an earlier run, which
 * `switchyard-lb-haproxy` (packages/native) removes before it becomes HAProxy. Without HAProxy as process 1, this may be a machine
 * instead of a load balancer's container.
 */
async function waitForHaproxy({ master, clock }: WorkerHost, signal: AbortSignal): Promise<void> {
  if ((await waitForMaster(master, () => true, { clock, limit: masterLimit }, signal)) !== undefined) return;
  throw new HostError('worker.master', `no HAProxy answers on ${master.socket}; look at the container's log`);
}

type WantedState = Pick<AppliedState, 'spec' | 'isPublished'>;

/** Makes before use, removes only after nothing uses it. */
async function apply({ spec, isPublished }: WantedState, host: WorkerHost, signal: AbortSignal): Promise<WorkerAnswer> {
  const { addresses, routes, appliedFile } = host;
  const before = await readApplied(appliedFile);
  const ownAddresses = isPublished ? host.ownAddresses() : [];
  const configuration = renderHaproxy({
    specs: [spec],
    ownAddresses,
    weightsPrefix: host.files.weightsPrefix,
  });
  await addresses.add(spec.addresses, signal);
  const during = routesDuring(before?.spec.routes ?? [], spec.routes);
  await routes.apply(during, signal);
  const rejection =
    before?.text === configuration.text ? undefined : await reconfigure(configuration, before, host, signal);
  if (rejection !== undefined) return { status: 'failed', reason: 'HAProxyRejected', message: rejection };
  const state = { spec, isPublished, text: configuration.text };
  const isSame = isEqual(before, state);
  if (!isSame) await writeApplied(appliedFile, state); // from here on health is followed by the new spec
  const isForKernel = needsKernel(spec) || (before !== undefined && needsKernel(before.spec));
  const forwarding = isForKernel ? await forward(state, host, signal) : 'unchanged';
  if (during.length > spec.routes.length) await routes.apply(spec.routes, signal);
  await addresses.removeOthers(spec.addresses, signal);
  return { status: isSame && forwarding === 'unchanged' ? 'unchanged' : 'applied' };
}

async function followHealth(host: WorkerHost, signal: AbortSignal): Promise<WorkerAnswer> {
  const applied = await readApplied(host.appliedFile);
  if (applied === undefined || !needsKernel(applied.spec)) return { status: 'unchanged' };
  return { status: await forward(applied, host, signal) };
}

/** Returns what was wrong; then HAProxy runs on as before. */
async function reconfigure(
  configuration: HaproxyConfiguration,
  before: AppliedState | undefined,
  host: WorkerHost,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { master, appliedFile } = host;
  const files = new ConfigurationFiles({ ...host, isForOthers: true });
  const rejection = await files.validate(configuration, signal);
  if (rejection !== undefined) return rejection;
  if (before !== undefined) await writeApplied(appliedFile, { ...before, text: undefined });
  await files.put();
  const refusal = await files.reload(master, configuration, signal);
  if (refusal === undefined) {
    await files.tidy(configuration);
    return undefined;
  }
  await files.restore(before?.text);
  if (before !== undefined) await writeApplied(appliedFile, before);
  return refusal;
}

/** Kernel rules from the spec and HAProxy's checks. */
async function forward(
  { spec, isPublished }: WantedState,
  host: WorkerHost,
  signal: AbortSignal,
): Promise<'applied' | 'unchanged'> {
  const files = new ConfigurationFiles({ ...host, isForOthers: true });
  const states = needsKernel(spec) ? await files.serverStates(signal) : '';
  const health = targetHealth([spec], states);
  await using kernel = await host.openKernel();
  return await kernel.apply({ specs: [spec], health, ownAddresses: isPublished ? host.ownAddresses() : [] }, signal);
}
