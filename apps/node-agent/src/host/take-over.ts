import {
  type Clock,
  type EventRecorder,
  type Logger,
  type Millis,
  type NodeName,
  seconds,
  type ServicePortKey,
} from '@switchyard/core';
import { type ReconcilerStatus } from '@switchyard/core/engine';
import type { LeftRules } from '../cleanup/left-rules.ts';
import { nodeWarning } from '../events/agent-events.ts';
import type { Removal } from '../cleanup/removal.ts';

interface TakeOverOptions {
  readonly nodeName: NodeName;
  /** Removes the rules of a stopped kube-proxy and of this agent's other modes (`all`), or only the latter. */
  readonly removeRules: (whose: 'all' | 'ours', signal: AbortSignal) => Promise<LeftRules>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly events: EventRecorder;
}

/** A kube-proxy that still runs looks for its chains every sync period, 30 s by default, and puts them back. */
const retryInterval: Millis = seconds(90);
/** After a quarter of an hour of failures the removal waits for an operator or the next start. */
const maxAttempts = 10;
/** Time for which the stale rules of another mode may serve a Service that the kernel refuses now. */
const staleRulesTimeout: Millis = seconds(60);

/**
 * Removes the rules of a stopped kube-proxy and of this agent's other modes after the first complete apply in every family. Until
 * then those rules serve what the new ones do not. A failure is logged as a warning and retried. If rules of kube-proxy were
 * removed, a second removal detects whether they came back: then kube-proxy still runs, which causes a warning.
 *
 * If both rule sets match, the stale rules of the other mode may win. They are therefore removed after a minute even if the kernel
 * still refuses a Service.
 */
export class TakeOver implements AsyncDisposable {
  readonly #options: TakeOverOptions;
  readonly #stop = new AbortController();
  #removing: Promise<void> | undefined;
  #removingOurs: Promise<void> | undefined;
  #writtenSince: Millis | undefined;

  constructor(options: TakeOverOptions) {
    this.#options = options;
  }

  /** Call it after each apply. */
  noteApplied(status: ReconcilerStatus): void {
    if (this.#removing !== undefined) return;
    const families = [...status.families.values()];
    if (families.some(({ lastApplied, failure }) => lastApplied === undefined || failure !== undefined)) return;
    const now = this.#options.clock.monotonic();
    this.#writtenSince ??= now;
    const refused = families.flatMap(({ failedServices }) => [...failedServices.keys()]);
    const { signal } = this.#stop;
    if (refused.length === 0) this.#removing = this.#remove(signal);
    else if (now - this.#writtenSince >= staleRulesTimeout) this.#removingOurs ??= this.#removeOurs(refused, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#removingOurs;
    await this.#removing;
  }

  async #removeOurs(refused: readonly ServicePortKey[], signal: AbortSignal): Promise<void> {
    const { removeRules, logger } = this.#options;
    try {
      const { ours } = await removeRules('ours', signal);
      this.#report({ ...ours, skipped: [] }, undefined, texts.ours);
      if (ours.removed.length > 0) logger.warn('refused Services lost the rules of our other mode', { refused });
    } catch (error) {
      if (!signal.aborted) logger.warn('what our other mode left could not be removed', { error });
    }
  }

  async #remove(signal: AbortSignal): Promise<void> {
    const { removeRules, clock, logger } = this.#options;
    let before: LeftRules | undefined;
    try {
      await this.#removingOurs;
      for (let attempt = 1; attempt <= maxAttempts; attempt++) {
        const { ours, kubeProxy } = await removeRules('all', signal);
        const hasFailed = ours.failures.length + kubeProxy.failures.length > 0;
        if (before !== undefined && before.kubeProxy.failures.length === 0 && before.kubeProxy.removed.length > 0) {
          if (kubeProxy.removed.length > 0) return this.#reportReturn(kubeProxy);
          if (!hasFailed) return;
        }
        this.#report(ours, before?.ours, texts.ours);
        this.#report(kubeProxy, before?.kubeProxy, texts.kubeProxy);
        if (!hasFailed && kubeProxy.removed.length === 0) return;
        before = { ours, kubeProxy };
        await clock.sleep(retryInterval, signal);
      }
    } catch (error) {
      if (!signal.aborted) logger.warn('what kube-proxy left could not be removed', { error });
    }
  }

  /** Logs and records what differs from the report before. */
  #report({ removed, kept, skipped, failures }: Removal, before: Removal | undefined, words: Words): void {
    const { logger } = this.#options;
    if (skipped.length > 0 && before === undefined)
      logger.info(`did not look for rules of ${words.whose}`, { skipped });
    if (removed.length > 0) {
      logger.info(`removed what ${words.whose} left`, { removed });
      this.#record('Normal', words.removed, `removed what ${words.whose} left: ${removed.join('; ')}`);
    }
    if (kept.length > 0 && before === undefined) logger.info(`rules of ${words.whose} stay`, { kept });
    const errors = failures.map(({ message }) => message);
    if (errors.length === 0 || errors.join() === before?.failures.map(({ message }) => message).join()) return;
    logger.warn(`what ${words.whose} left could not be removed`, { errors });
    this.#record('Warning', words.failed, `cannot remove what ${words.whose} left: ${errors.join('; ')}`);
  }

  #reportReturn({ removed }: Removal): void {
    const what = 'rules of kube-proxy came back: it still runs on this node; stop it, or both translate';
    this.#options.logger.warn(what, { removed });
    this.#record('Warning', 'KubeProxyStillRuns', `${what}; removed once more: ${removed.join('; ')}`);
  }

  #record(type: 'Normal' | 'Warning', reason: string, note: string): void {
    const { nodeName, events } = this.#options;
    events.record({ ...nodeWarning(nodeName, reason, note, 'TakeOver'), type });
  }
}

interface Words {
  readonly whose: string;
  /** Reasons of Events. */
  readonly removed: string;
  readonly failed: string;
}

const texts: Readonly<Record<keyof LeftRules, Words>> = {
  ours: { whose: 'our other mode', removed: 'OtherModeRulesRemoved', failed: 'FailedToRemoveOtherModeRules' },
  kubeProxy: { whose: 'kube-proxy', removed: 'KubeProxyRulesRemoved', failed: 'FailedToRemoveKubeProxyRules' },
};
