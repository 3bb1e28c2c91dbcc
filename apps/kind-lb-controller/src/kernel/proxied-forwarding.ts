import { type Clock, type ForwardingTable, HostError, type IpFamily, type Logger } from '@switchyard/core';
import { type DataplaneBackend } from '@switchyard/core/engine';
import { createFlowTable } from '@switchyard/netfilter';
import { ensureForwarding } from './forwarding-switch.ts';
import type { KernelSettings } from './kernel-settings.ts';
import { removeStaleFlows } from './stale-flows.ts';

/** Namespace and surroundings of forwarding with address translation. */
export interface ProxiedForwardingOptions {
  /** Path of the namespace; undefined: our own. */
  readonly netns: string | undefined;
  readonly settings: KernelSettings;
  readonly interfaceName: string;
  /** As `KernelForwarderOptions.forwarding`. */
  readonly forwarding: 'set' | 'check';
  readonly clock: Clock;
  readonly logger: Logger;
}

/** UDP and SCTP of one IP family with address translation, by the nftables backend; what it wrote stays when it is disposed. */
export class ProxiedForwarding implements AsyncDisposable {
  readonly #options: ProxiedForwardingOptions;
  readonly ipFamily: IpFamily;
  #backend: DataplaneBackend | undefined;
  /** Asked once: it takes longer than all the rest. */
  #isForwarding = false;

  constructor(options: ProxiedForwardingOptions, ipFamily: IpFamily) {
    this.#options = options;
    this.ipFamily = ipFamily;
  }

  /** Makes the kernel match the table, adopting what is there; without Services everything goes. Returns whether it wrote. */
  async apply(table: ForwardingTable, signal: AbortSignal): Promise<boolean> {
    const backend = (this.#backend ??= await this.#open(signal));
    if (table.services.size === 0) return (await backend.cleanup(signal)).length > 0;
    const { settings, netns, forwarding, interfaceName, clock, logger } = this.#options;
    if (!this.#isForwarding) {
      await ensureForwarding(settings, { ipFamily: this.ipFamily, mode: forwarding, interfaceName }, signal);
      this.#isForwarding = true;
    }
    const outcome = await backend.apply({ table, scope: { kind: 'full' } }, signal);
    if (outcome.status === 'failed') throw outcome.error;
    const flows = createFlowTable({ clock, ...(netns === undefined ? {} : { netns }) });
    const hasChanged = outcome.writes > 0;
    const except = outcome.status === 'partial' ? outcome.failed : undefined;
    const count = await removeStaleFlows({ table, except, hasChanged }, { flows, clock }, signal);
    if (count > 0) logger.info('stale flows removed', { ipFamily: this.ipFamily, count });
    if (outcome.status === 'partial') throw refused(this.ipFamily, outcome.failed);
    return hasChanged || count > 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#backend?.[Symbol.asyncDispose]();
    this.#backend = undefined;
  }

  async #open(signal: AbortSignal): Promise<DataplaneBackend> {
    const { nftablesBackend } = await import('@switchyard/backend-nftables');
    const { netns, clock, logger } = this.#options;
    const host = { logger, clock, ...(netns === undefined ? {} : { netns }) };
    return nftablesBackend.open(host, this.ipFamily, signal);
  }
}

function refused(ipFamily: IpFamily, failed: ReadonlyMap<string, Error>): HostError {
  const details = [...failed].map(([key, error]) => `${key}: ${error.message}`).join('; ');
  const message = `the kernel does not forward some ports (${ipFamily}), the others work: ${details}; will be tried again`;
  return new HostError('lb.kernel', message, { cause: [...failed.values()][0] });
}
