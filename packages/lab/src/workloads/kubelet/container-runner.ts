import { basename } from 'node:path';
import { type Clock, messageOf, type Millis, millis } from '@switchyard/core';
import type { Container, Pod } from '@switchyard/core/kubernetes';
import type { LabPod, LabProcess } from '../../lab.ts';
import { podMoment } from '../workload-event.ts';
import type { PodWorkerOptions } from './pod-worker.ts';
import { type ContainerState, type ContainerView, crashLoop, exitCodeOf } from './pod-status.ts';
import { followReadiness } from './readiness.ts';
import { echoServerCommand } from '../../echo-server.ts';
import type { TimeScale } from '../facts.ts';

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

export interface ContainerCommand {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The echo server keeps its sockets open until it exits, so it stops accepting when it ends. */
  readonly isEchoServer: boolean;
}

const netexecPorts = { http: 8080, udp: 8081 };

/**
 * Returns the program of a container, since the lab has no images. `command` runs unchanged on this machine, in the pod's
 * network namespace. Everything else is the echo server: with `agnhost netexec` arguments (`--http-port`, `--udp-port`,
 * `--delay-shutdown`; and `--echo-port`, which agnhost lacks, for TCP connections that stay open; others are ignored) it
 * takes its ports from them, otherwise from the container's `ports`, or 8080/TCP. Only the echo server's `--delay-shutdown` follows the time scale.
 */
export function containerCommand(pod: Pod, container: Container, scale: TimeScale): ContainerCommand {
  const env = Object.fromEntries((container.env ?? []).map(({ name, value }) => [name, value ?? '']));
  const [file, ...words] = container.command ?? [];
  const args = [...words, ...(container.args ?? [])];
  if (file !== undefined && basename(file) !== 'agnhost') return { file, args, env, isEchoServer: false };
  const isNetexec = args[0] === 'netexec';
  const flags = parseFlags(isNetexec ? args.slice(1) : args);
  const declared = (protocol: string): readonly number[] =>
    (container.ports ?? []).filter((port) => (port.protocol ?? 'TCP') === protocol).map((port) => port.containerPort);
  const ports = isNetexec ? { http: [netexecPorts.http], udp: [netexecPorts.udp] } : declaredOrDefault(declared);
  const echo = echoServerCommand({
    pod: pod.metadata.name ?? '',
    node: pod.spec?.nodeName ?? '',
    http: numberFlag(flags, 'http-port', ports.http),
    udp: numberFlag(flags, 'udp-port', ports.udp),
    tcp: numberFlag(flags, 'echo-port', []),
    delayShutdown: scale.of(Number(flags.get('delay-shutdown') ?? 0)) / 1000,
  });
  return { ...echo, env, isEchoServer: true };
}

function declaredOrDefault(declared: (protocol: string) => readonly number[]): {
  readonly http: readonly number[];
  readonly udp: readonly number[];
} {
  const [http, udp] = [declared('TCP'), declared('UDP')];
  return { http: http.length + udp.length === 0 ? [netexecPorts.http] : http, udp };
}

/** A port of -1 or 0 switches a server off, as in agnhost. */
function numberFlag(flags: ReadonlyMap<string, string>, name: string, otherwise: readonly number[]): readonly number[] {
  const value = flags.get(name);
  if (value === undefined) return otherwise;
  return Number(value) > 0 ? [Number(value)] : [];
}

/** `--name=value` and `--name value`; anything else is skipped. */
function parseFlags(args: readonly string[]): ReadonlyMap<string, string> {
  const flags = new Map<string, string>();
  for (const [index, arg] of args.entries()) {
    const [, name, value] = /^--?([a-z-]+)(?:=(.*))?$/.exec(arg) ?? [];
    if (name !== undefined) flags.set(name, value ?? args[index + 1] ?? '');
  }
  return flags;
}

/** A monotonic instant that can be brought forward while callers wait for it, as a grace period can. */
export interface Deadline {
  readonly at: Millis;
  /** Does nothing when `at` is not earlier. */
  shorten(at: Millis): void;
  /** Resolves at the instant; rejects with `signal.reason` when aborted first. */
  reached(signal: AbortSignal): Promise<void>;
}

/** Timers beyond this overflow and fire at once. */
const longestSleep = 24 * 3600 * 1000;

/** A deadline at `at` on the clock's monotonic scale. */
export function createDeadline(clock: Clock, at: Millis): Deadline {
  let current = at;
  let moved = new AbortController();
  return {
    get at() {
      return current;
    },
    shorten: (next) => {
      if (next >= current) return;
      current = next;
      const old = moved;
      moved = new AbortController();
      old.abort();
    },
    reached: async (signal) => {
      while (clock.monotonic() < current) {
        const either = AbortSignal.any([signal, moved.signal]);
        await clock
          .sleep(millis(Math.min(longestSleep, Math.max(0, current - clock.monotonic()))), either)
          .catch(() => undefined);
        signal.throwIfAborted();
      }
    },
  };
}
