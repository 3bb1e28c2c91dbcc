import { uptime } from 'node:os';
import {
  type ApplyOutcome,
  type ApplyRequest,
  type BackendCapabilities,
  type BackendObservers,
  type Clock,
  type DataplaneBackend,
  HostError,
  type IpFamily,
  type Logger,
  type Millis,
  millis,
  seconds,
  systemClock,
} from '@switchyard/core';
import { runApply } from '@switchyard/core/engine';
import type { CommandRunner } from '@switchyard/host';
import type { Change } from './apply/change.ts';
import { Engine } from './apply/engine.ts';
import { kubeProxyRenderer } from './apply/renderer.ts';
import { removeRules } from './cleanup.ts';
import type { IptablesClient } from './client/iptables-client.ts';
import { RuleCounters } from './counters/rule-counters.ts';
import { RuleWatch, type RuleWatchOptions } from './drift/rule-watch.ts';
import { dumpRules } from './dump.ts';
import { readHeartbeat, writeHeartbeat } from './heartbeat.ts';
import type { RenderChoices } from './options.ts';
import { capabilities } from './probe.ts';

/** What a backend is made of. */
export interface IptablesBackendParts {
  readonly client: IptablesClient;
  /** For cleanup, which looks at both variants. */
  readonly runner: CommandRunner;
  readonly logger: Logger;
  readonly choices: Omit<RenderChoices, 'comments'>;
  /** Makes what rules name besides chains; called before all rules are compared. Throws `HostError`. */
  readonly prepare?: () => void;
  /** For how long stale chains of a large cluster stand at least. */
  readonly syncPeriod: Millis;
  readonly clock?: Clock;
  /** What foreign changes are told by; absent: they are not noticed. */
  readonly watch?: Pick<RuleWatchOptions, 'own' | 'netns'>;
  /** Time since boot; default: the machine's. */
  readonly uptime?: () => Millis;
}

/** Drives the iptables rules of one family. */
export class IptablesBackend implements DataplaneBackend {
  readonly name = 'iptables';
  readonly ipFamily: IpFamily;
  readonly capabilities: BackendCapabilities = capabilities;
  /** What is written, and what is known of the kernel. */
  readonly engine: Engine;
  readonly observers: BackendObservers;
  readonly #counters: RuleCounters;
  readonly #watch: RuleWatch | undefined;
  readonly #parts: IptablesBackendParts;
  readonly #uptime: () => Millis;

  constructor(parts: IptablesBackendParts) {
    const { client, logger, choices, syncPeriod, prepare, clock = systemClock } = parts;
    this.ipFamily = client.ipFamily;
    const onWritten = (change: Change): void => {
      this.#counters.noteWritten(change);
      this.#watch?.noteWritten(change);
    };
    const renderer = kubeProxyRenderer;
    const engine = new Engine({ client, renderer, logger, clock, choices, syncPeriod, prepare, onWritten });
    this.engine = engine;
    this.#counters = new RuleCounters({ client, clock, entries: () => engine.entries() });
    if (parts.watch !== undefined) {
      const watch = new RuleWatch({
        ...parts.watch,
        client,
        known: engine,
        suspects: engine,
        clock,
        logger,
        period: syncPeriod,
      });
      this.#watch = watch;
    }
    this.#parts = parts;
    const watch = this.#watch;
    this.observers = {
      // Reads the few chains that all Services share; see docs/design/drift.md for what that costs.
      counters: (signal) => this.#counters.read(signal),
      ruleCounts: () => engine.ruleCounts(),
      age: { mark: (signal) => this.#markAge(signal), read: (signal) => this.#readAge(signal) },
      ...(watch === undefined ? {} : { drift: (report, signal) => watch.run(report, signal) }),
    };
    this.#uptime = parts.uptime ?? ((): Millis => seconds(uptime()));
  }

  async apply(request: ApplyRequest, signal: AbortSignal): Promise<ApplyOutcome> {
    using _apply = this.#watch?.applying();
    return await runApply(this.engine, request, { signal, logger: this.#parts.logger, ipFamily: this.ipFamily });
  }

  async cleanup(signal: AbortSignal): Promise<readonly string[]> {
    this.engine.forget();
    return removeRules(this.#parts.runner, this.ipFamily, signal);
  }

  async dump(signal: AbortSignal): Promise<string> {
    return dumpRules(this.#parts.client, signal);
  }

  async #markAge(signal: AbortSignal): Promise<void> {
    if (!this.engine.isKnown) throw new HostError('iptables.heartbeat', 'cannot mark the rules as right: no apply yet');
    await writeHeartbeat(this.#parts.client, this.#uptime(), signal);
  }

  async #readAge(signal: AbortSignal): Promise<Millis | undefined> {
    const at = await readHeartbeat(this.#parts.client, signal);
    return at === undefined ? undefined : millis(Math.max(0, this.#uptime() - at));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.engine.forget(); // forwarding stays
  }
}
