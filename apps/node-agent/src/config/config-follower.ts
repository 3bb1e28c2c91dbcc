import { type Clock, ConfigError, type Logger, type Metrics, type Millis, millis, seconds } from '@switchyard/core';
import { settingChanges, type SettingChange } from './config-changes.ts';
import { logNotes } from './notes.ts';
import { readConfigFile } from './read-files.ts';
import type { Config, RunConfig } from './run-config.ts';
import { valueText } from './settings.ts';

/** The configuration as it is now. */
export interface ConfigFollower {
  current(): RunConfig;
  /** Calls `listener` after each change that applies to the running process. */
  onChange(listener: () => void): void;
}

/** A configuration that never changes. */
export function fixedConfig(config: RunConfig): ConfigFollower {
  return { current: () => config, onChange: () => undefined };
}

/** What following needs. */
export interface ConfigWatchOptions {
  readonly config: RunConfig;
  /** Reads everything again. Rejects with `ConfigError` when that is not in order. */
  readonly load: () => Promise<Config>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /**
   * Why a new process could not run with that configuration on this machine; undefined: it can. Then this process goes on with the
   * configuration it has. Default: it always can.
   */
  readonly restartObstacle?: (next: RunConfig, signal: AbortSignal) => Promise<Error | undefined>;
  /** Called once for each change that has an obstacle. */
  readonly noteObstacle?: (error: Error) => void;
}

/** Pause between two probes of a configuration that this machine could not run. */
const obstaclePause = seconds(30);

/** How often the files are looked at. They are small, and looking at their contents misses no way of changing them. */
const interval = seconds(2);

/**
 * Follows the files a configuration came from, by their contents: an edit, a rename over them and the symlinks a
 * ConfigMap's volume swaps are all the same to it. A change counts when two looks in a row saw the same text, so that a
 * file that is being written is not taken for finished.
 */
export class ConfigWatch implements ConfigFollower {
  readonly #options: ConfigWatchOptions;
  readonly #listeners: (() => void)[] = [];
  #current: RunConfig;
  /** What was read last, whatever became of it. */
  #seen: string;
  /** What is known already: in force, or refused. */
  #handled: string;
  /** The files are worse than what is in force. */
  #isBroken = false;
  /** Time of the next probe; undefined while the files have no obstacle. */
  #probeAt: Millis | undefined;

  constructor(options: ConfigWatchOptions) {
    this.#options = options;
    this.#current = options.config;
    this.#seen = textOf([...options.config.files.values()]);
    this.#handled = this.#seen;
  }

  current(): RunConfig {
    return this.#current;
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /**
   * Follows until aborted. A broken file is logged and counted, and the configuration stays. Rejects with `ConfigError`
   * when a setting changed that only a new process can take over, and a new process can run here.
   */
  async run(signal: AbortSignal): Promise<void> {
    if (this.#current.files.size === 0) return;
    while (!signal.aborted) {
      const isWoken = await this.#options.clock.sleep(interval, signal).then(
        () => true,
        () => false,
      );
      if (isWoken) await this.#look(signal);
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    const files = [...this.#current.files.keys()];
    const texts = await Promise.all(files.map((file) => readConfigFile(file, file).catch((error: unknown) => error)));
    const text = textOf(texts);
    const isSettled = text === this.#seen;
    this.#seen = text;
    const isNew = text !== this.#handled;
    const isDue = this.#probeAt !== undefined && this.#options.clock.monotonic() >= this.#probeAt;
    if (!isSettled || !(isNew || isDue)) return;
    this.#handled = text;
    this.#probeAt = undefined;
    const next = await this.#load();
    if (next !== undefined) await this.#take(next, isNew, signal);
  }

  async #load(): Promise<RunConfig | undefined> {
    try {
      const config = await this.#options.load();
      if (config.kind === 'run') return config;
      throw new ConfigError('config.purpose', 'the flags no longer ask to run'); // they cannot change
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      const files = [...this.#current.files.keys()];
      this.#options.logger.error('the changed configuration is broken, the old one stays in force', { files, error });
      this.#count('rejected');
      this.#isBroken = true;
      return undefined;
    }
  }

  async #take(next: RunConfig, isNew: boolean, signal: AbortSignal): Promise<void> {
    const { clock, logger, metrics } = this.#options;
    const changes = settingChanges(this.#current.settings, next.settings);
    const restarts = changes.filter(({ change }) => change === 'restart');
    if (restarts.length > 0) {
      const obstacle = await this.#options.restartObstacle?.(next, signal);
      if (obstacle !== undefined) return this.#stay(obstacle, restarts, isNew);
      this.#count('restart');
      throw restartNeeded([...next.files.keys()], restarts);
    }
    const known = new Set(this.#current.notes.map((note) => JSON.stringify(note)));
    if (this.#isBroken && changes.length === 0) {
      logger.info('the configuration file is in order again, and says what is in force');
    }
    this.#isBroken = false;
    this.#current = next;
    if (changes.length === 0) return;
    this.#count('applied');
    metrics.set('switchyard_config_last_reload_timestamp_seconds', {}, clock.now() / 1000);
    logger.info('the configuration changed', { settings: changes.map(changeText) });
    logNotes(
      next.notes.filter((note) => !known.has(JSON.stringify(note))),
      logger,
    );
    if (changes.some(({ change }) => change === 'live')) for (const listener of this.#listeners) listener();
  }

  /** Ending would only stop what works. */
  #stay(error: Error, changes: readonly SettingChange[], isNew: boolean): void {
    const { clock, logger, noteObstacle } = this.#options;
    this.#probeAt = millis(clock.monotonic() + obstaclePause);
    this.#isBroken = true;
    if (!isNew) return; // said already
    const settings = changes.map(changeText);
    logger.error('this node cannot run the changed configuration, the old one stays in force', { settings, error });
    this.#count('rejected');
    noteObstacle?.(error);
  }

  #count(result: 'applied' | 'rejected' | 'restart'): void {
    this.#options.metrics.add('switchyard_config_reloads_total', { result });
  }
}

function restartNeeded(files: readonly string[], changes: readonly SettingChange[]): ConfigError {
  return new ConfigError(
    'config.changed',
    `ending for a restart, since ${files.join(' or ')} changed a setting that a running process cannot take over: ` +
      `${changes.map(changeText).join('; ')}; forwarding stays in place`,
  );
}

function changeText({ path, before, now }: SettingChange): string {
  return `${path}: ${valueText(before)} -> ${valueText(now)}`;
}

/** A file that cannot be read counts as a text of its own: its error. */
function textOf(texts: readonly unknown[]): string {
  return JSON.stringify(texts.map((one) => (one instanceof Error ? { error: one.message } : one)));
}
