import { type Clock, ConfigError, type Logger, type Metrics, type Millis, millis, seconds } from '@switchyard/core';
import { logNotes } from './notes.ts';
import { readConfigFile } from './decode-file.ts';
import type { Config, RunConfig } from './run-config.ts';
import { valueText, asWritten } from './settings.ts';
import type { EffectiveSettings } from './effective.ts';
import { isReadIn, proxyModeOf } from './proxy-mode.ts';
import type { ChangeClass } from './schema/field.ts';

interface SettingChange {
  readonly path: string;
  /** Both as written in a file. */
  readonly before: unknown;
  readonly now: unknown;
  readonly change: ChangeClass;
}

/** Every setting that differs, in the order of the schemas. */
export function settingChanges(before: EffectiveSettings, now: EffectiveSettings): readonly SettingChange[] {
  const mode = proxyModeOf(before.kubeProxy);
  return (['kubeProxy', 'switchyard'] as const).flatMap((group) =>
    now[group].entries().flatMap(([field, setting]): readonly SettingChange[] => {
      const { path } = field;
      const change = isReadIn(mode, field) ? field.change : 'none';
      const old = before[group].at(path);
      if (valueText(old.value) === valueText(setting.value)) return [];
      return [{ path, before: asWritten(field, old.value), now: asWritten(field, setting.value), change }];
    }),
  );
}

/** The configuration as it is now. */
export interface ConfigFollower {
  current(): RunConfig;
  onChange(listener: () => void): void;
}

/** A configuration that never changes. */
export function fixedConfig(config: RunConfig): ConfigFollower {
  return { current: () => config, onChange: () => undefined };
}

/** Options of `ConfigWatch`. */
export interface ConfigWatchOptions {
  readonly config: RunConfig;
  /** Reads the configuration again. Rejects with `ConfigError` if it is invalid. */
  readonly load: () => Promise<Config>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /**
   * Reason why a new process cannot run with that configuration on this machine; undefined if it can. With a reason, this process
   * keeps its configuration. Default: undefined.
   */
  readonly restartObstacle?: (next: RunConfig, signal: AbortSignal) => Promise<Error | undefined>;
  /** Called once for each change that has an obstacle. */
  readonly noteObstacle?: (error: Error) => void;
}

/** Pause between two probes of a configuration that this machine could not run. */
const obstaclePause = seconds(30);

/** Interval between reads of the files. They are small, and comparing contents detects every kind of change. */
const interval = seconds(2);

/**
 * Follows the files of a configuration by their contents: detects edits, renames and the symlink swap of a ConfigMap
 * volume alike. A change counts when two successive reads return the same text, so that a file that is being written is
 * not read as complete.
 */
export class ConfigWatch implements ConfigFollower {
  readonly #options: ConfigWatchOptions;
  readonly #listeners: (() => void)[] = [];
  #current: RunConfig;
  /** Text of the last read. */
  #seen: string;
  /** Text that was applied or rejected last. */
  #handled: string;
  /** The files hold a configuration that was rejected. */
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
      if (isWoken) await this.#check(signal);
    }
  }

  async #check(signal: AbortSignal): Promise<void> {
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
    if (next !== undefined) await this.#apply(next, isNew, signal);
  }

  async #load(): Promise<RunConfig | undefined> {
    try {
      const config = await this.#options.load();
      if (config.kind === 'run') return config;
      throw new ConfigError('config.purpose', 'the flags no longer select running'); // they cannot change
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      const files = [...this.#current.files.keys()];
      this.#options.logger.error('the changed configuration is broken, the old one stays in force', { files, error });
      this.#count('rejected');
      this.#isBroken = true;
      return undefined;
    }
  }

  async #apply(next: RunConfig, isNew: boolean, signal: AbortSignal): Promise<void> {
    const { clock, logger, metrics } = this.#options;
    const changes = settingChanges(this.#current.settings, next.settings);
    const restarts = changes.filter(({ change }) => change === 'restart');
    if (restarts.length > 0) {
      const obstacle = await this.#options.restartObstacle?.(next, signal);
      if (obstacle !== undefined) return this.#keep(obstacle, restarts, isNew);
      this.#count('restart');
      throw new ConfigError(
        'config.changed',
        `ending for a restart, since ${[...next.files.keys()].join(' or ')} changed a setting that a running process ` +
          `cannot take over: ${restarts.map(changeText).join('; ')}; forwarding stays in place`,
      );
    }
    const known = new Set(this.#current.notes.map((note) => JSON.stringify(note)));
    if (this.#isBroken && changes.length === 0) {
      logger.info('the configuration file is valid again and equals the running configuration');
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

  /** Keeps the running configuration, because a restarted process could not run. */
  #keep(error: Error, changes: readonly SettingChange[], isNew: boolean): void {
    const { clock, logger, noteObstacle } = this.#options;
    this.#probeAt = millis(clock.monotonic() + obstaclePause);
    this.#isBroken = true;
    if (!isNew) return; // logged already
    const settings = changes.map(changeText);
    logger.error('this node cannot run the changed configuration, the old one stays in force', { settings, error });
    this.#count('rejected');
    noteObstacle?.(error);
  }

  #count(result: 'applied' | 'rejected' | 'restart'): void {
    this.#options.metrics.add('switchyard_config_reloads_total', { result });
  }
}

function changeText({ path, before, now }: SettingChange): string {
  return `${path}: ${valueText(before)} -> ${valueText(now)}`;
}

/** Texts as one text. The error of an unreadable file counts as its text. */
function textOf(texts: readonly unknown[]): string {
  return JSON.stringify(texts.map((one) => (one instanceof Error ? { error: one.message } : one)));
}
