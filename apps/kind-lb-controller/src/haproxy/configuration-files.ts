import { readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type Clock, type Logger, seconds } from '@switchyard/core';
import type { CommandRunner } from '@switchyard/host';
import { askSocket } from './ask-socket.ts';
import type { HaproxyFiles } from './haproxy-files.ts';
import { errorsIn } from './haproxy-log.ts';
import { type HaproxyMaster, masterState, waitForMaster } from './haproxy-master.ts';
import type { HaproxyConfiguration } from './render-haproxy.ts';
import { keepServerStates } from './server-state.ts';

/** Files and program of a HAProxy whose configuration changes. */
export interface ConfigurationFilesOptions {
  readonly files: HaproxyFiles;
  readonly program: string;
  /** Whether other users must be able to read the files: HAProxy itself in a container. */
  readonly isForOthers: boolean;
  readonly runner: CommandRunner;
  readonly clock: Clock;
  readonly log: Logger;
}

const checkLimit = seconds(20);
const reloadLimit = seconds(10);
const dumpLimit = seconds(2);

/**
 * How a configuration comes into use, wherever its HAProxy runs. In this order: `validate`, `put`, then `reload` a master or
 * start one after `keepStates`; after a refusal `restore` what runs on.
 */
export class ConfigurationFiles {
  readonly #options: ConfigurationFilesOptions;

  constructor(options: ConfigurationFilesOptions) {
    this.#options = options;
  }

  /** Writes the text beside the one in use and lets HAProxy validate it. Returns what is wrong. */
  async validate({ text, weights }: HaproxyConfiguration, signal: AbortSignal): Promise<string | undefined> {
    const { program, runner, files } = this.#options;
    const candidate = `${files.configuration}.new`;
    if (weights !== undefined) await this.#write(weights.path, weights.text);
    await this.#write(candidate, text);
    const args = ['-c', '-f', files.base, '-f', candidate];
    const result = await runner.run(program, args, { timeout: checkLimit, signal });
    return result.exitCode === 0 ? undefined : `haproxy -c: ${errorsIn(result.stderr)}`;
  }

  /** Makes the configuration judged last the one that HAProxy reads. */
  async put(): Promise<void> {
    const { configuration } = this.#options.files;
    await rename(`${configuration}.new`, configuration);
  }

  /** Restores the file of the running configuration for the next reload. Undefined: HAProxy runs with the base alone. */
  async restore(text: string | undefined): Promise<void> {
    const { configuration } = this.#options.files;
    if (text === undefined) return rm(configuration, { force: true });
    await this.#write(`${configuration}.new`, text);
    await this.put();
  }

  /** Replaces the master's workers. Returns what went wrong; then the old ones work on. */
  async reload(
    master: HaproxyMaster,
    configuration: HaproxyConfiguration,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { clock, log } = this.#options;
    const { reloads } = await masterState(master, signal);
    await this.keepStates(configuration, signal);
    master.clearErrorOutput();
    await master.requestReload(signal);
    const state = await waitForMaster(
      master,
      (one) => one.reloads > reloads && (one.failed > 0 || one.workers.length > 0),
      { clock, limit: reloadLimit },
      signal,
    );
    if (state === undefined) return `haproxy did not reload: ${errorsIn(master.errorOutput)}`;
    if (state.failed > 0) return `haproxy refused to reload: ${errorsIn(master.errorOutput)}`;
    log.debug('HAProxy reloaded', { workers: state.workers, reloads: state.reloads });
    return undefined;
  }

  /** Removes programs that the running configuration does not name; undefined: all. */
  async tidy(running: HaproxyConfiguration | undefined): Promise<void> {
    const { weightsPrefix } = this.#options.files;
    const folder = dirname(weightsPrefix);
    const stale = (await readdir(folder))
      .filter((name) => name.startsWith(basename(weightsPrefix)))
      .map((name) => join(folder, name))
      .filter((path) => path !== running?.weights?.path);
    await Promise.all(stale.map((path) => rm(path, { force: true })));
  }

  /** Writes the file from which new workers learn what is DOWN. Without `next`, nothing is known. */
  async keepStates(next: HaproxyConfiguration | undefined, signal: AbortSignal): Promise<void> {
    const { files, log } = this.#options;
    let text = '1\n';
    if (next !== undefined) {
      try {
        text = keepServerStates(await this.serverStates(signal), next.servers);
      } catch (error) {
        signal.throwIfAborted();
        log.warn('cannot carry server states over the reload; all count as UP until checked', { error });
      }
    }
    await this.#write(`${files.serverState}.new`, text);
    await rename(`${files.serverState}.new`, files.serverState);
  }

  /** HAProxy's answer to `show servers state`. Rejects with `HostError` while it does not listen. */
  serverStates(signal: AbortSignal): Promise<string> {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(dumpLimit)]);
    return askSocket(this.#options.files.adminSocket, 'show servers state', limited);
  }

  #write(path: string, text: string): Promise<void> {
    return writeFile(path, text, { mode: this.#options.isForOthers ? 0o644 : 0o600 });
  }
}
