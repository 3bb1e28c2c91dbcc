import { messageOf, type Millis, millis } from '@switchyard/core';
import type { Container, Pod } from '@switchyard/core/kubernetes';
import type { LabPod, LabProcess } from '../../lab.ts';
import { podMoment } from '../workload-event.ts';
import { containerCommand } from './container-command.ts';
import type { PodWorkerOptions } from './pod-worker.ts';
import { type ContainerState, type ContainerView, crashLoop, exitCodeOf } from './pod-status.ts';
import { createDeadline, type Deadline } from './deadline.ts';
import { followReadiness } from './readiness.ts';

/** Environment and callbacks of a container. */
export interface ContainerRunnerOptions extends Pick<
  PodWorkerOptions,
  'probes' | 'scale' | 'clock' | 'emit' | 'onChange'
> {
  readonly pod: Pod;
  readonly container: Container;
  readonly host: LabPod;
  readonly restartPolicy: string;
  /** Restarts by previous kubelets. */
  readonly restartCount: number;
}

/** Seconds before the second restart; doubled for each further one. The first comes at once. */
const firstBackOff = 10;
const longestBackOff = 300;
/** Seconds without a crash after which the back-off is reset. */
const backOffMemory = 600;
/** Seconds between SIGTERM and SIGKILL at least, even if preStop has used up the grace period. */
const leastGrace = 2;

/** One container of one pod: its process, restarts, readiness and end. */
export class ContainerRunner {
  readonly #options: ContainerRunnerOptions;
  readonly #stopping = new AbortController();
  #process: LabProcess | undefined;
  #state: ContainerState = { kind: 'waiting', reason: 'ContainerCreating' };
  #isReady = false;
  #restarts: number;

  constructor(options: ContainerRunnerOptions) {
    this.#options = options;
    this.#restarts = options.restartCount;
  }

  get view(): ContainerView {
    const { name, image = '' } = this.#options.container;
    return { name, image, state: this.#state, isReady: this.#isReady, restartCount: this.#restarts };
  }

  /** Runs the process and restarts it by the restart policy. Resolves when it will not run again. */
  async run(): Promise<void> {
    const { clock, scale, restartPolicy } = this.#options;
    let crashes = 0;
    while (!this.#stopping.signal.aborted) {
      const startedAt = clock.now();
      const result = await this.#runOnce(startedAt).catch((error: unknown) => this.#failToStart(error));
      const isDone = restartPolicy === 'Never' || (restartPolicy === 'OnFailure' && exitCodeOf(result) === 0);
      if (this.#stopping.signal.aborted || isDone) return;
      if (clock.now() - startedAt > scale.of(backOffMemory)) crashes = 0;
      await this.#backOff(crashes);
      crashes += 1;
      this.#restarts += 1;
    }
  }

  /** preStop, SIGTERM, and SIGKILL at the deadline. Resolves when the process has ended. */
  async stop(deadline: Deadline, signal: AbortSignal): Promise<void> {
    const { clock, scale, container, emit } = this.#options;
    this.#stopping.abort();
    const running = this.#process;
    if (running === undefined) return;
    const inTime = new AbortController();
    const either = AbortSignal.any([signal, inTime.signal]);
    const ended = running.ended.finally(() => inTime.abort());
    await Promise.race([this.#preStop(either), deadline.reached(either), ended]).catch(() => undefined);
    if (!either.aborted) {
      emit({ ...this.#moment(), kind: 'sigtermSent', container: container.name });
      running.child.kill('SIGTERM');
      const least = clock.monotonic() + scale.of(leastGrace);
      const last = least > deadline.at ? createDeadline(clock, millis(least)) : deadline;
      await Promise.race([last.reached(either), ended]).catch(() => undefined);
    }
    inTime.abort();
    await running.stop(millis(0));
  }

  /** SIGKILL, at once. */
  async kill(): Promise<void> {
    this.#stopping.abort();
    await this.#process?.stop(millis(0));
  }

  async #runOnce(startedAt: Millis): Promise<number | string> {
    const { pod, container, host, scale, clock, emit } = this.#options;
    const command = containerCommand(pod, container, scale);
    const running = host.spawn(command.file, command.args, { env: command.env, logName: container.name });
    this.#process = running;
    emit({ ...this.#moment(), kind: 'processStarted', container: container.name, pid: running.pid });
    this.#become({ kind: 'running', startedAt }, container.readinessProbe === undefined);
    const ending = new AbortController();
    const probing = this.#followReadiness(ending.signal);
    const result = await running.ended;
    ending.abort();
    this.#process = undefined;
    const moment = { ...this.#moment(), container: container.name };
    if (command.isEchoServer) emit({ ...moment, kind: 'acceptingStopped' });
    emit({ ...moment, kind: 'processEnded', result });
    this.#become({ kind: 'ended', startedAt, endedAt: clock.now(), result }, false);
    await probing;
    return result;
  }

  #failToStart(error: unknown): number {
    const message = messageOf(error);
    this.#become({ kind: 'waiting', reason: 'CreateContainerError', message }, false);
    return 128;
  }

  async #followReadiness(signal: AbortSignal): Promise<void> {
    const { container, host, probes, scale, clock } = this.#options;
    const probe = container.readinessProbe;
    if (probe === undefined) return;
    const attempt = (inner: AbortSignal): Promise<boolean> => probes.attempt(host, container, probe, inner);
    const onChange = (isReady: boolean): void => this.#become(this.#state, isReady);
    await followReadiness({ probe, attempt, onChange, scale, clock }, signal);
  }

  async #backOff(crashes: number): Promise<void> {
    if (crashes === 0) return;
    const { clock, scale, container } = this.#options;
    const wait = Math.min(longestBackOff, firstBackOff * 2 ** (crashes - 1));
    const message = `back-off ${wait}s restarting failed container=${container.name}`;
    this.#become({ kind: 'waiting', reason: crashLoop, message }, false);
    await clock.sleep(scale.of(wait), this.#stopping.signal).catch(() => undefined);
  }

  async #preStop(signal: AbortSignal): Promise<void> {
    const { container, host, scale, clock } = this.#options;
    const hook = container.lifecycle?.preStop;
    const sleep = hook?.sleep?.seconds ?? sleepOf(hook?.exec?.command ?? []);
    if (sleep !== undefined) return clock.sleep(scale.of(sleep), signal);
    const [file, ...args] = hook?.exec?.command ?? [];
    // A hook that fails does not keep the container from being stopped.
    if (file !== undefined) await host.run(file, args);
  }

  #become(state: ContainerState, isReady: boolean): void {
    this.#state = state;
    this.#isReady = isReady;
    this.#options.onChange();
  }

  #moment(): ReturnType<typeof podMoment> & { readonly node: string } {
    const { pod, clock } = this.#options;
    return { ...podMoment(pod, clock.now()), node: pod.spec?.nodeName ?? '' };
  }
}

/** The seconds that `sleep N`, also through `sh -c`, waits for; undefined for any other command. */
export function sleepOf(command: readonly string[]): number | undefined {
  const isShell = /(^|\/)(ba|da)?sh$/.test(command[0] ?? '') && command[1] === '-c' && command.length === 3;
  const text = isShell ? (command[2] ?? '') : command.join(' ');
  const match = /^(?:\/bin\/|\/usr\/bin\/)?sleep\s+(\d+(?:\.\d+)?)s?\s*$/.exec(text.trim());
  return match?.[1] === undefined ? undefined : Number(match[1]);
}
