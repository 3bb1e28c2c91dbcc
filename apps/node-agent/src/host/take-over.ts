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

/** What taking over needs. */
export interface TakeOverOptions {
  readonly nodeName: NodeName;
  /** Removes what a stopped kube-proxy, and this agent in another mode, left; or the latter alone. */
  readonly removeRules: (whose: 'all' | 'ours', signal: AbortSignal) => Promise<LeftRules>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly events: EventRecorder;
}

/** A kube-proxy that still runs looks for its chains every sync period, 30 s by default, and puts them back. */
const nextLook: Millis = seconds(90);
/** What cannot be removed for a quarter of an hour waits for a person, or the next start. */
const maxLooks = 10;
/** Nobody keeps what our other mode left; for so long it may serve a Service that the kernel refuses now. */
const patience: Millis = seconds(60);

/**
 * Removes what a stopped kube-proxy, and this agent in another mode, left, when everything the cluster asks is in the kernel for
 * the first time in every family: until then those rules serve what ours do not. A failure is a warning, and tried again; the
 * rules in question only match what ours have translated before. Where something of kube-proxy was removed, a second look tells
 * whether it came back: then kube-proxy was not stopped, which is warned of.
 *
 * Of two that translate the kernel may ask our other mode's rules first, and nobody updates those. So they go after a minute also
 * where a Service is still refused.
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
    else if (now - this.#writtenSince >= patience) this.#removingOurs ??= this.#removeOurs(refused, signal);
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
      this.#tell({ ...ours, skipped: [] }, undefined, texts.ours);
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
      for (let look = 1; look <= maxLooks; look++) {
        const { ours, kubeProxy } = await removeRules('all', signal);
        const hasFailed = ours.failures.length + kubeProxy.failures.length > 0;
        if (before !== undefined && before.kubeProxy.failures.length === 0 && before.kubeProxy.removed.length > 0) {
          if (kubeProxy.removed.length > 0) return this.#tellOfReturn(kubeProxy);
          if (!hasFailed) return;
        }
        this.#tell(ours, before?.ours, texts.ours);
        this.#tell(kubeProxy, before?.kubeProxy, texts.kubeProxy);
        if (!hasFailed && kubeProxy.removed.length === 0) return;
        before = { ours, kubeProxy };
        await clock.sleep(nextLook, signal);
      }
    } catch (error) {
      if (!signal.aborted) logger.warn('what kube-proxy left could not be removed', { error });
    }
  }

  /** What was told before is not told again. */
  #tell({ removed, kept, skipped, failures }: Removal, before: Removal | undefined, words: Words): void {
    const { logger } = this.#options;
    if (skipped.length > 0 && before === undefined)
      logger.info(`not looked for what ${words.whose} may have left`, { skipped });
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

  #tellOfReturn({ removed }: Removal): void {
    if (removed.length === 0) return;
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
