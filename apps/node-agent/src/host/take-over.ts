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
import type { Removal } from '../cleanup/removal.ts';

/** What taking over needs. */
export interface TakeOverOptions {
  readonly nodeName: NodeName;
  /** Removes what a stopped kube-proxy left. */
  readonly removeRules: (signal: AbortSignal) => Promise<Removal>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly events: EventRecorder;
}

/** A kube-proxy that still runs looks for its chains every sync period, 30 s by default, and puts them back. */
const secondLook: Millis = seconds(90);

/**
 * Removes what a stopped kube-proxy left, when everything the cluster asks is in the kernel for the first time in
 * every family: until then its rules serve what ours do not. A failure is a warning; the rules in question only match what ours
 * have translated before. Where something was removed, a second look tells whether it came back: then kube-proxy
 * was not stopped, which is warned of.
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
    try {
      const removal = await removeRules(signal);
      this.#tell(removal);
      if (removal.removed.length === 0) return;
      await clock.sleep(secondLook, signal);
      this.#tellOfReturn(await removeRules(signal));
    } catch (error) {
      if (!signal.aborted) logger.warn('what kube-proxy left could not be removed', { error });
    }
  }

  #tell({ removed, kept, skipped, failures }: Removal): void {
    const { logger } = this.#options;
    if (skipped.length > 0) logger.info('not looked for what kube-proxy may have left', { skipped });
    if (removed.length > 0) {
      logger.info('removed what kube-proxy left', { removed });
      this.#record('Normal', 'KubeProxyRulesRemoved', `removed what kube-proxy left: ${removed.join('; ')}`);
    }
    if (kept.length > 0) logger.info('rules of kube-proxy stay', { kept });
    if (failures.length === 0) return;
    const errors = failures.map(({ message }) => message);
    logger.warn('what kube-proxy left could not be removed', { errors });
    this.#record('Warning', 'FailedToRemoveKubeProxyRules', `cannot remove what kube-proxy left: ${errors.join('; ')}`);
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
