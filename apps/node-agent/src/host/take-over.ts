import {
  type Clock,
  type EventRecorder,
  type Logger,
  type Millis,
  type NodeName,
  nodeSubject,
  type ReconcilerStatus,
  seconds,
} from '@switchyard/core';
import type { LeftRules } from '../cleanup/left-rules.ts';
import type { Removal } from '../cleanup/removal.ts';

/** What taking over needs. */
export interface TakeOverOptions {
  readonly nodeName: NodeName;
  /** Removes what a stopped kube-proxy, and this agent in another mode, left. */
  readonly removeRules: (signal: AbortSignal) => Promise<LeftRules>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly events: EventRecorder;
}

/** A kube-proxy that still runs looks for its chains every sync period, 30 s by default, and puts them back. */
const nextLook: Millis = seconds(90);
/** What cannot be removed for a quarter of an hour waits for a person, or the next start. */
const maxLooks = 10;

/**
 * Removes what a stopped kube-proxy, and this agent in another mode, left, when everything the cluster asks is in the kernel for
 * the first time in every family: until then those rules serve what ours do not. A failure is a warning, and tried again; the
 * rules in question only match what ours have translated before. Where something of kube-proxy was removed, a second look tells
 * whether it came back: then kube-proxy was not stopped, which is warned of.
 */
export class TakeOver implements AsyncDisposable {
  readonly #options: TakeOverOptions;
  readonly #stop = new AbortController();
  #removing: Promise<void> | undefined;

  constructor(options: TakeOverOptions) {
    this.#options = options;
  }

  /** Call it after each apply. */
  noteApplied(status: ReconcilerStatus): void {
    if (this.#removing !== undefined) return;
    const isComplete = [...status.families.values()].every(
      ({ lastApplied, failure, failedServices }) =>
        lastApplied !== undefined && failure === undefined && failedServices.size === 0,
    );
    if (isComplete) this.#removing = this.#remove(this.#stop.signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#removing;
  }

  async #remove(signal: AbortSignal): Promise<void> {
    const { removeRules, clock, logger } = this.#options;
    let before: LeftRules | undefined;
    try {
      for (let look = 1; look <= maxLooks; look++) {
        const { ours, kubeProxy } = await removeRules(signal);
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
    const regarding = nodeSubject(this.#options.nodeName);
    this.#options.events.record({ type, reason, action: 'TakeOver', regarding, note });
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
