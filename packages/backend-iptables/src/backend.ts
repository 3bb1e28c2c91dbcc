import { uptime } from 'node:os';
import {
  type AppliedState,
  ApplyEngine,
  type ApplyOutcome,
  type ApplyRequest,
  type BackendCapabilities,
  type BackendObservers,
  createApply,
  type DataplaneBackend,
  ServiceTracker,
} from '@switchyard/core/engine';
import { type Clock, HostError, type IpFamily, type Millis, millis, seconds, systemClock } from '@switchyard/core';
import type { CommandRunner } from '@switchyard/host';
import type { Change } from './kernel/apply/change.ts';
import { IptablesDriver, type IptablesDriverOptions } from './kernel/apply/driver.ts';
import type { HeldChains } from './kernel/apply/service-chains.ts';
import { removeRules } from './kernel/cleanup.ts';
import { RuleCounters } from './kernel/rule-counters.ts';
import { LegacyLook } from './watch/legacy-look.ts';
import { type RuleWatchOptions, watchRules } from './watch/watch-legacy.ts';
import { dumpRules } from './kernel/dump.ts';
import { readHeartbeat, writeHeartbeat } from './kernel/heartbeat.ts';
import { capabilities } from './kernel/probe.ts';

export interface IptablesBackendParts extends Omit<IptablesDriverOptions, 'tracker' | 'clock' | 'onWritten'> {
  /** Runs the programs of both variants for cleanup. */
  readonly runner: CommandRunner;
  readonly clock?: Clock | undefined;
  /** Source of foreign changes. Default: foreign changes are not noticed. */
  readonly watch?: Pick<RuleWatchOptions, 'own' | 'netns'>;
  /** Time since boot; default: the machine's. */
  readonly uptime?: () => Millis;
}

export class IptablesBackend implements DataplaneBackend {
  readonly name = 'iptables';
  readonly ipFamily: IpFamily;
  readonly capabilities: BackendCapabilities = capabilities;
  /** The rules in the kernel, as recorded. */
  readonly driver: IptablesDriver;
  readonly observers: BackendObservers;
  readonly #counters: RuleCounters;
  readonly #look: LegacyLook;
  readonly #parts: IptablesBackendParts;
  readonly #engine: AppliedState;
  readonly #apply: DataplaneBackend['apply'];
  readonly #uptime: () => Millis;

  constructor(parts: IptablesBackendParts) {
    const { client, logger, choices, syncPeriod, prepare, watch, clock = systemClock } = parts;
    this.ipFamily = client.ipFamily;
    const onWritten = (change: Change): void => {
      this.#counters.noteWritten(change);
      this.#look.noteWritten(change);
    };
    const tracker = new ServiceTracker<HeldChains>();
    const driver = new IptablesDriver({ client, tracker, logger, clock, choices, syncPeriod, prepare, onWritten });
    this.driver = driver;
    this.#engine = new ApplyEngine(driver, tracker);
    this.#apply = createApply(this.#engine, { logger, ipFamily: this.ipFamily });
    this.#counters = new RuleCounters({ client, clock, entries: () => driver.entries() });
    this.#look = new LegacyLook(driver);
    const { ipFamily, variant } = client;
    const watched = { ipFamily, variant, look: this.#look, foreign: driver, clock, logger, period: syncPeriod };
    this.#parts = parts;
    this.observers = {
      // Reads the few chains that all Services share; see docs/design/drift.md for what that costs.
      counters: (signal) => this.#counters.read(signal),
      ruleCounts: () => driver.ruleCounts(),
      age: { mark: (signal) => this.#markAge(signal), read: (signal) => this.#readAge(signal) },
      ...(watch && { drift: (report, signal) => watchRules({ ...watch, ...watched }, report, signal) }),
    };
    this.#uptime = parts.uptime ?? ((): Millis => seconds(uptime()));
  }

  async apply(request: ApplyRequest, signal: AbortSignal): Promise<ApplyOutcome> {
    using _apply = this.#look.applying();
    return await this.#apply(request, signal);
  }

  async cleanup(signal: AbortSignal): Promise<readonly string[]> {
    this.#engine.forget();
    return removeRules(this.#parts.runner, this.ipFamily, signal);
  }

  async dump(signal: AbortSignal): Promise<string> {
    return dumpRules(this.#parts.client, signal);
  }

  async #markAge(signal: AbortSignal): Promise<void> {
    if (this.driver.state === undefined)
      throw new HostError('iptables.heartbeat', 'cannot mark the rules as right: no apply yet');
    await writeHeartbeat(this.#parts.client, this.#uptime(), signal);
  }

  async #readAge(signal: AbortSignal): Promise<Millis | undefined> {
    const at = await readHeartbeat(this.#parts.client, signal);
    return at === undefined ? undefined : millis(Math.max(0, this.#uptime() - at));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#engine.forget(); // forwarding stays
  }
}
