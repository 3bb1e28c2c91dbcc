import { isEqual, type Port, seconds } from '@switchyard/core';
import { CliError, type CliFailure } from './cli-failure.ts';
import { type ContainerPlan, containerVersion, runArguments, drainSeconds } from './container-arguments.ts';
import { type ContainerState, type EngineContainer, parseContainers } from './container-inspect.ts';
import { containerName, idOf, labels } from './container-names.ts';
import type { FailedOutcome } from './container-failures.ts';
import type { DockerCli } from './docker-cli.ts';

/** How a load balancer's container was brought to run. */
export type PresentContainer =
  | { readonly status: 'running'; readonly container: RunningContainer }
  /** Another process changed it, or it had to be removed first: look again. */
  | { readonly status: 'changed' }
  | FailedOutcome;

/** Fields of a running container. */
export type RunningContainer = Pick<EngineContainer, 'id' | 'name' | 'published'>;

/** The containers with this label, such as `dev.switchyard.lb.cluster=kind`, running or not. Rejects with `CliError`. */
export async function listContainers(
  cli: DockerCli,
  filters: readonly string[],
  signal: AbortSignal,
): Promise<readonly EngineContainer[]> {
  const attempt = 'cannot list containers';
  const selected = filters.flatMap((one) => ['--filter', one]);
  const ids = (await cli.run(attempt, ['ps', '--all', '--quiet', '--no-trunc', ...selected], {}, signal)).split(/\s+/);
  const wanted = ids.filter(Boolean);
  if (wanted.length === 0) return [];
  const result = await cli.try(['container', 'inspect', ...wanted], {}, signal);
  // A container removed in between makes the command fail, but it still prints the others.
  if (result.status === 'failed' && result.failure.kind !== 'noSuchContainer')
    throw new CliError(attempt, result.failure);
  return parseContainers(result.stdout);
}

/** The container of that name or id; undefined: there is none. Rejects with `CliError`. */
export async function inspectContainer(
  cli: DockerCli,
  name: string,
  signal: AbortSignal,
): Promise<EngineContainer | undefined> {
  const result = await cli.try(['container', 'inspect', name], {}, signal);
  if (result.status === 'ok') return parseContainers(result.stdout)[0];
  if (result.failure.kind === 'noSuchContainer') return undefined;
  throw new CliError(`cannot look at container ${name}`, result.failure);
}

/**
 * Takes one step towards the container as planned: makes a missing one, completes a half-made one, starts one that does not run, takes away one
 * whose plan differs. `elsewhere` collects ports that this machine has no room for under their own number. Rejects with `CliError`.
 */
export async function stepTowards(
  cli: DockerCli,
  plan: ContainerPlan,
  elsewhere: Set<Port>,
  signal: AbortSignal,
): Promise<PresentContainer> {
  const name = containerName(plan.id);
  const container = await inspectContainer(cli, name, signal);
  if (container === undefined) return makeContainer(cli, plan, elsewhere, signal);
  if (!isEqual(idOf(container.labels), plan.id)) {
    const message = `a container that is not of switchyard-lb has the name ${name}; remove or rename it`;
    return { status: 'failed', reason: 'ContainerNameTaken', message };
  }
  if (container.state === 'gone' || container.labels[labels.version] !== containerVersion(plan)) {
    await removeContainer(cli, name, signal);
    return { status: 'changed' };
  }
  if (container.state === 'running') return { status: 'running', container };
  return start(cli, { plan, name, elsewhere }, container.state, signal);
}

/** Removes a container at once, with its anonymous volumes. One that is not there is success. Rejects with `CliError`. */
export async function removeContainer(cli: DockerCli, name: string, signal: AbortSignal): Promise<void> {
  const result = await cli.try(['rm', '--force', '--volumes', name], {}, signal);
  if (result.status === 'ok' || result.failure.kind === 'noSuchContainer') return;
  if (/removal of container .* is already in progress/i.test(result.failure.stderr)) return;
  throw new CliError(`cannot remove container ${name}`, result.failure);
}

/** Lets a running container finish its connections, for `drainSeconds` at most; at once when it has none. Rejects with `CliError`. */
export async function drainContainer(cli: DockerCli, name: string, signal: AbortSignal): Promise<void> {
  const limits = { timeout: seconds(drainSeconds + 30), isSlow: true };
  const result = await cli.try(['stop', name], limits, signal);
  if (result.status === 'ok' || ['noSuchContainer', 'notRunning'].includes(result.failure.kind)) return;
  throw new CliError(`cannot stop container ${name}`, result.failure);
}

/**
 * Makes a missing container and starts it, in one command. Half of that may be done when it fails or is aborted; `stepTowards` does the other
 * half. Rejects with `CliError`.
 */
export async function makeContainer(
  cli: DockerCli,
  plan: ContainerPlan,
  elsewhere: Set<Port>,
  signal: AbortSignal,
): Promise<PresentContainer> {
  const result = await cli.try(runArguments(plan, elsewhere), {}, signal);
  const name = containerName(plan.id);
  if (result.status === 'failed') return afterFailedStart(cli, { plan, name, elsewhere }, result.failure, signal);
  const id = result.stdout.trim().split('\n').at(-1) ?? '';
  // Where ports are published the engine must be asked which; otherwise all that is needed is known.
  return plan.ports.length > 0 ? { status: 'changed' } : { status: 'running', container: { id, name, published: [] } };
}

interface StartRequest {
  readonly plan: ContainerPlan;
  readonly name: string;
  readonly elsewhere: Set<Port>;
}

async function start(
  cli: DockerCli,
  request: StartRequest,
  state: ContainerState,
  signal: AbortSignal,
): Promise<PresentContainer> {
  // One that the engine is about to start again waits for its back-off, which a restart cuts short.
  const command = state === 'paused' ? ['unpause'] : state === 'restarting' ? ['restart', '--time=0'] : ['start'];
  const result = await cli.try([...command, request.name], {}, signal);
  return result.status === 'ok' ? { status: 'changed' } : afterFailedStart(cli, request, result.failure, signal);
}

/** Handles a failed start. Looks again after a race with another process; removes a container that can never start. */
async function afterFailedStart(
  cli: DockerCli,
  { plan, name, elsewhere }: StartRequest,
  failure: CliFailure,
  signal: AbortSignal,
): Promise<PresentContainer> {
  if (failure.kind === 'nameInUse' || failure.kind === 'noSuchContainer') return { status: 'changed' };
  const isTaken = failure.kind === 'portInUse' && plan.ports.some(({ port }) => !elsewhere.has(port));
  if (isTaken || failure.kind === 'noSuchNetwork') await removeContainer(cli, name, signal);
  if (!isTaken) throw new CliError(`cannot start container ${name}`, failure);
  for (const port of takenPorts(plan, failure.stderr)) elsewhere.add(port);
  return { status: 'changed' };
}

/** Those of the plan's ports that the engine's words name; all of them if none. */
function takenPorts({ ports }: ContainerPlan, stderr: string): readonly Port[] {
  const named = new Set([...stderr.matchAll(/:(\d+)\b/g)].map(([, digits]) => Number(digits)));
  const taken = ports.map(({ port }) => port).filter((port) => named.has(port));
  return taken.length > 0 ? taken : ports.map(({ port }) => port);
}
