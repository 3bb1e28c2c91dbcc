import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, HostError, type Logger, seconds } from '@switchyard/core';
import type { CommandRunner } from '@switchyard/host';
import type { HaproxyConfiguration } from './render-haproxy.ts';
import { askSocket } from './ask-socket.ts';
import { complaintIn, parseServerState } from './haproxy-log.ts';
import type { ApplyResult, LoadBalancerRuntime, ServerStateChange } from '../runtime/load-balancer-runtime.ts';
import { MasterProcess } from './master-process.ts';
import { keepServerStates } from './server-state.ts';

/** Files of one HAProxy, all in its run directory. */
export interface HaproxyFiles {
  readonly configuration: string;
  readonly adminSocket: string;
  readonly masterSocket: string;
  readonly serverState: string;
  /** How a later controller finds a HAProxy that an earlier one left: the pid, believed only if its command line names our configuration. */
  readonly pid: string;
}

/** How to run HAProxy as a process. */
export interface HaproxyProcessOptions {
  /** Kept short by the caller: socket paths are limited to about 100 bytes. Created if missing. */
  readonly runDirectory: string;
  readonly program: string;
  readonly netns: string | undefined;
  /** Leave HAProxy running when this object is disposed. */
  readonly isKeptOnExit: boolean;
  readonly runner: CommandRunner;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onStateChange: (change: ServerStateChange) => void;
  /** HAProxy ended without being asked. */
  readonly onEnd: () => void;
}

const checkLimit = seconds(20);
const startLimit = seconds(10);
const stopLimit = seconds(3);
const dumpLimit = seconds(2);

/** The paths of a run directory's files. */
export function haproxyFiles(runDirectory: string): HaproxyFiles {
  return {
    configuration: join(runDirectory, 'haproxy.cfg'),
    adminSocket: join(runDirectory, 'admin.sock'),
    masterSocket: join(runDirectory, 'master.sock'),
    serverState: join(runDirectory, 'servers'),
    pid: join(runDirectory, 'haproxy.pid'),
  };
}

/**
 * The real HAProxy as a child process, in this namespace or another one. New configurations are checked by
 * `haproxy -c`, then taken over by a reload: new workers get the listening sockets and the health of all servers that
 * stayed the same; old workers finish their connections.
 */
export class HaproxyProcess implements LoadBalancerRuntime {
  readonly #options: HaproxyProcessOptions;
  readonly #files: HaproxyFiles;
  #master: MasterProcess | undefined;
  #running: HaproxyConfiguration | undefined;

  constructor(options: HaproxyProcessOptions) {
    this.#options = options;
    this.#files = haproxyFiles(options.runDirectory);
  }

  async apply(configuration: HaproxyConfiguration, signal: AbortSignal): Promise<ApplyResult> {
    const isRunning = this.#master !== undefined && !this.#master.hasEnded;
    if (isRunning && this.#running?.text === configuration.text) return { status: 'unchanged' };
    await mkdir(this.#options.runDirectory, { recursive: true, mode: 0o700 });
    const complaint = await this.#check(configuration.text, signal);
    if (complaint !== undefined) return { status: 'rejected', reason: complaint };
    await rename(`${this.#files.configuration}.new`, this.#files.configuration);
    const reason =
      isRunning && this.#master !== undefined
        ? await this.#reload(this.#master, configuration, signal)
        : await this.#start(configuration, signal);
    if (reason === undefined) {
      this.#running = configuration;
      return { status: 'applied' };
    }
    // What runs on must also be what HAProxy would read again.
    if (this.#running !== undefined) await writeFile(this.#files.configuration, this.#running.text, { mode: 0o600 });
    return { status: 'rejected', reason };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const master = this.#master;
    this.#master = undefined;
    if (master === undefined || master.hasEnded) return;
    if (this.#options.isKeptOnExit) return master.release();
    master.kill('SIGTERM');
    const never = new AbortController();
    const isLate = await Promise.race([
      master.ended.then(() => false),
      this.#options.clock.sleep(stopLimit, never.signal).then(
        () => true,
        () => false,
      ),
    ]);
    never.abort();
    if (isLate) master.kill('SIGKILL'); // workers end with their master
    await master.ended;
    await Promise.all(Object.values(this.#files).map((file: string) => rm(file, { force: true })));
  }

  /** Writes the text beside the one in use and lets HAProxy judge it. Returns what is wrong. */
  async #check(text: string, signal: AbortSignal): Promise<string | undefined> {
    const { program, runner } = this.#options;
    const file = `${this.#files.configuration}.new`;
    await writeFile(file, text, { mode: 0o600 });
    const result = await runner.run(program, ['-c', '-f', file], { timeout: checkLimit, signal });
    return result.exitCode === 0 ? undefined : `haproxy -c: ${complaintIn(result.stderr)}`;
  }

  /** Starts a master, in the place of one that an earlier controller left. Returns what went wrong. */
  async #start(configuration: HaproxyConfiguration, signal: AbortSignal): Promise<string | undefined> {
    const { clock, log, netns, program } = this.#options;
    const { configuration: file, masterSocket, adminSocket } = this.#files;
    const predecessor = await this.#findPredecessor();
    await this.#saveServerStates(predecessor === undefined ? undefined : configuration, signal);
    const takeOver = predecessor === undefined ? [] : ['-x', adminSocket, '-sf', `${predecessor}`];
    const master = new MasterProcess({
      program,
      args: ['-W', '-S', `${masterSocket},mode,600`, '-f', file, ...takeOver],
      netns,
      masterSocket,
      clock,
      onLogLine: (line) => this.#readLogLine(line),
    });
    const state = await this.#awaitOrStop(master, (one) => one.workers.length > 0, signal);
    if (state === undefined) return `haproxy did not start: ${complaintIn(master.complaint)}`;
    await writeFile(this.#files.pid, `${state.pid}\n`, { mode: 0o600 });
    this.#master = master;
    void master.ended.then(() => this.#onEnd(master));
    log.info('HAProxy started', { pid: state.pid, workers: state.workers, predecessor });
    return undefined;
  }

  /** Replaces the workers. Returns what went wrong; then the old ones work on. */
  async #reload(
    master: MasterProcess,
    configuration: HaproxyConfiguration,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { reloads } = await master.state(signal);
    await this.#saveServerStates(configuration, signal);
    master.clearComplaint();
    master.kill('SIGUSR2');
    const state = await master.waitFor((one) => one.reloads > reloads, startLimit, signal);
    if (state === undefined) return `haproxy did not reload: ${complaintIn(master.complaint)}`;
    if (state.failed > 0) return `haproxy refused to reload: ${complaintIn(master.complaint)}`;
    this.#options.log.debug('HAProxy reloaded', { workers: state.workers, reloads: state.reloads });
    return undefined;
  }

  /** A master that did not come up, or whose start was aborted, must not stay behind. */
  async #awaitOrStop(
    master: MasterProcess,
    isReady: Parameters<MasterProcess['waitFor']>[0],
    signal: AbortSignal,
  ): ReturnType<MasterProcess['waitFor']> {
    try {
      const state = await master.waitFor(isReady, startLimit, signal);
      if (state !== undefined) return state;
    } catch (error) {
      master.kill('SIGKILL');
      throw error;
    }
    master.kill('SIGKILL');
    await master.ended;
    return undefined;
  }

  /** The file from which new workers learn what is DOWN. Without `next`, nothing is known. */
  async #saveServerStates(next: HaproxyConfiguration | undefined, signal: AbortSignal): Promise<void> {
    let text = '1\n';
    if (next !== undefined) {
      try {
        const limited = AbortSignal.any([signal, AbortSignal.timeout(dumpLimit)]);
        text = keepServerStates(await askSocket(this.#files.adminSocket, 'show servers state', limited), next.servers);
      } catch (error) {
        signal.throwIfAborted();
        this.#options.log.warn('cannot carry server states over the reload; all count as UP until checked', { error });
      }
    }
    await writeFile(`${this.#files.serverState}.new`, text, { mode: 0o600 });
    await rename(`${this.#files.serverState}.new`, this.#files.serverState);
  }

  async #findPredecessor(): Promise<number | undefined> {
    try {
      const pid = Number(await readFile(this.#files.pid, 'utf8'));
      if (!Number.isInteger(pid) || pid <= 1) return undefined;
      const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0');
      return words.includes('-W') && words.includes(this.#files.configuration) ? pid : undefined;
    } catch {
      return undefined; // no file, or no such process
    }
  }

  #readLogLine(line: string): void {
    const changed = parseServerState(line);
    if (changed === undefined) return this.#options.log.debug('HAProxy', { line });
    this.#options.onStateChange({ time: this.#options.clock.now(), ...changed });
  }

  #onEnd(master: MasterProcess): void {
    if (this.#master !== master) return; // we stopped it
    this.#running = undefined;
    const error = new HostError('haproxy.ended', `HAProxy ended by itself: ${complaintIn(master.complaint)}`);
    this.#options.log.error('HAProxy ended; it is started again', { error });
    this.#options.onEnd();
  }
}

/** Longest path of a run directory: HAProxy adds a name and a suffix to it, and 107 bytes is the kernel's limit. */
export const maxRunDirectoryLength = 70;
