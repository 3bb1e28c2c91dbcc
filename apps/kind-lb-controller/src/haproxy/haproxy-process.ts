import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, HostError, type Logger, seconds } from '@switchyard/core';
import type { CommandRunner } from '@switchyard/host';
import { ConfigurationFiles } from './configuration-files.ts';
import { type HaproxyFiles, haproxyFiles } from './haproxy-files.ts';
import { errorsIn, parseServerState, type ServerStateChange } from './haproxy-log.ts';
import { answeringMaster, type MasterState, waitForMaster } from './haproxy-master.ts';
import { MasterProcess } from './master-process.ts';
import { renderBase } from './render-base.ts';
import type { HaproxyConfiguration } from './render-haproxy.ts';

/** How an attempt to run a configuration ended. */
export type ApplyResult =
  | { readonly status: 'applied' }
  | { readonly status: 'unchanged' }
  /** HAProxy said no; what ran before runs on. `reason` is what it said, on one line. */
  | { readonly status: 'rejected'; readonly reason: string };

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
  /** Called for a log line about a server. Must not throw. */
  readonly onStateChange: (change: ServerStateChange) => void;
  /** HAProxy ended without being asked. Must not throw. */
  readonly onEnd: () => void;
}

const startLimit = seconds(10);
const stopLimit = seconds(3);

/**
 * The real HAProxy as a child process, in this namespace or another one. New configurations are checked by
 * `haproxy -c`, then taken over by a reload: new workers get the listening sockets and the health of all servers that
 * stayed the same; old workers finish their connections.
 */
export class HaproxyProcess implements AsyncDisposable {
  readonly #options: HaproxyProcessOptions;
  readonly #files: HaproxyFiles;
  readonly #configurations: ConfigurationFiles;
  /** How a later controller finds a HAProxy that an earlier one left: the pid, believed only if its command line names our configuration. */
  readonly #pidFile: string;
  #master: MasterProcess | undefined;
  #running: HaproxyConfiguration | undefined;

  constructor(options: HaproxyProcessOptions) {
    this.#options = options;
    this.#files = haproxyFiles(options.runDirectory);
    this.#pidFile = join(options.runDirectory, 'haproxy.pid');
    this.#configurations = new ConfigurationFiles({ ...options, files: this.#files, isForOthers: false });
  }

  /** The pid of the master; undefined while it does not run. */
  get pid(): number | undefined {
    return this.#isRunning() ? this.#master?.pid : undefined;
  }

  /**
   * Makes HAProxy run this configuration without dropping a connection. A bad one never replaces a good one. Starts
   * HAProxy if it does not run. Rejects only when that cannot be tried at all. Calls must not overlap.
   */
  async apply(configuration: HaproxyConfiguration, signal: AbortSignal): Promise<ApplyResult> {
    if (this.#isRunning() && this.#running?.text === configuration.text) return { status: 'unchanged' };
    await mkdir(this.#options.runDirectory, { recursive: true, mode: 0o700 });
    await writeFile(this.#files.base, renderBase(this.#files), { mode: 0o600 });
    const rejection = await this.#configurations.validate(configuration, signal);
    if (rejection !== undefined) return { status: 'rejected', reason: rejection };
    await this.#configurations.put();
    const reason =
      this.#isRunning() && this.#master !== undefined
        ? await this.#configurations.reload(this.#master, configuration, signal)
        : await this.#start(configuration, signal);
    if (reason === undefined) {
      this.#running = configuration;
      await this.#configurations.tidy(configuration);
      return { status: 'applied' };
    }
    if (this.#running !== undefined) await this.#configurations.restore(this.#running.text);
    return { status: 'rejected', reason };
  }

  /** HAProxy's answer to `show servers state`. Rejects with `HostError` while it does not run. */
  serverStates(signal: AbortSignal): Promise<string> {
    return this.#configurations.serverStates(signal);
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
    const files: readonly string[] = [...Object.values(this.#files), this.#pidFile];
    await Promise.all(files.map((file) => rm(file, { force: true })));
    await this.#configurations.tidy(undefined);
  }

  #isRunning(): boolean {
    return this.#master !== undefined && !this.#master.hasEnded;
  }

  /** Starts a master, in the place of one that an earlier controller left. Returns what went wrong. */
  async #start(configuration: HaproxyConfiguration, signal: AbortSignal): Promise<string | undefined> {
    const { log, netns, program } = this.#options;
    const { base, configuration: file, masterSocket, adminSocket } = this.#files;
    const predecessor = await this.#findPredecessor(signal);
    await this.#configurations.keepStates(predecessor === undefined ? undefined : configuration, signal);
    const takeOver = predecessor === undefined ? [] : ['-x', adminSocket, '-sf', `${predecessor}`];
    const master = new MasterProcess({
      program,
      args: ['-W', '-S', `${masterSocket},mode,600`, '-f', base, '-f', file, ...takeOver],
      netns,
      masterSocket,
      onLogLine: (line) => this.#readLogLine(line),
    });
    const state = await this.#awaitOrStop(master, signal);
    if (state === undefined) return `haproxy did not start: ${errorsIn(master.errorOutput)}`;
    await writeFile(this.#pidFile, `${state.pid}\n`, { mode: 0o600 });
    this.#master = master;
    void master.ended.then(() => this.#onEnd(master));
    log.info('HAProxy started', { pid: state.pid, workers: state.workers, predecessor });
    return undefined;
  }

  /** Waits for a master; kills one that did not come up or whose start was aborted. */
  async #awaitOrStop(master: MasterProcess, signal: AbortSignal): Promise<MasterState | undefined> {
    try {
      const limits = { clock: this.#options.clock, limit: startLimit };
      const state = await waitForMaster(master, (one) => one.workers.length > 0, limits, signal);
      if (state !== undefined) return state;
    } catch (error) {
      master.kill('SIGKILL');
      throw error;
    }
    master.kill('SIGKILL');
    await master.ended;
    return undefined;
  }

  /** By the pid file, or by the master's socket: the earlier controller may have been killed before it wrote the file. */
  async #findPredecessor(signal: AbortSignal): Promise<number | undefined> {
    const written = await readFile(this.#pidFile, 'utf8').then(Number, () => undefined); // no file
    if (written !== undefined && (await this.#isOurs(written))) return written;
    const answering = (await answeringMaster(this.#files.masterSocket, signal))?.pid;
    return answering !== undefined && (await this.#isOurs(answering)) ? answering : undefined;
  }

  async #isOurs(pid: number): Promise<boolean> {
    if (!Number.isInteger(pid) || pid <= 1) return false;
    try {
      const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0');
      return words.includes('-W') && words.includes(this.#files.configuration);
    } catch {
      return false; // no such process
    }
  }

  #readLogLine(line: string): void {
    const changed = parseServerState(line);
    if (changed === undefined) return this.#options.log.debug('HAProxy', { line });
    this.#options.onStateChange(changed);
  }

  #onEnd(master: MasterProcess): void {
    if (this.#master !== master) return; // we stopped it
    this.#running = undefined;
    const error = new HostError('haproxy.ended', `HAProxy ended by itself: ${errorsIn(master.errorOutput)}`);
    this.#options.log.error('HAProxy ended; it is started again', { error });
    this.#options.onEnd();
  }
}
