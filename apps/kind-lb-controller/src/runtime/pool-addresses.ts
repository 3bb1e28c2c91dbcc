import type { Clock, IpAddress, Logger } from '@switchyard/core';
import type { CommandRunner } from '@switchyard/host';
import type { InterfaceAddresses } from '../kernel/interface-addresses.ts';
import { waitForDrain } from './wait-for-drain.ts';

/** With what addresses are put on an interface and taken away. */
export interface PoolAddressesOptions {
  /** Undefined: they are on an interface already, and stay. */
  readonly interfaceAddresses: InterfaceAddresses | undefined;
  readonly runner: CommandRunner;
  readonly netns: string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Addresses on the interface: those in use, and those on which connections may still go on. */
export class PoolAddresses {
  readonly #options: PoolAddressesOptions;
  readonly #signal: AbortSignal;
  #inUse: readonly IpAddress[] = [];
  /** Until the promise resolves. */
  readonly #draining = new Map<IpAddress, Promise<void>>();

  /** `signal` ends waiting. */
  constructor(options: PoolAddressesOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
  }

  /** Adds what is missing. */
  async add(addresses: readonly IpAddress[]): Promise<void> {
    await this.#options.interfaceAddresses?.add(addresses, this.#signal);
  }

  /**
   * Sets the addresses in use. Those no longer in use begin to drain; afterwards `whenDrained` must call `removeUnused`
   * again.
   */
  use(addresses: readonly IpAddress[], whenDrained: () => Promise<void>): void {
    const gone = this.#inUse.filter((address) => !addresses.includes(address));
    this.#inUse = addresses;
    if (this.#options.interfaceAddresses === undefined || gone.length === 0) return;
    const drained = this.#drain(gone).then(() => {
      for (const address of gone) if (this.#draining.get(address) === drained) this.#draining.delete(address);
      return whenDrained();
    });
    for (const address of gone) this.#draining.set(address, drained);
  }

  /** Removes what is neither in use nor draining, also what an earlier controller added. */
  async removeUnused(): Promise<void> {
    const wanted = [...this.#inUse, ...this.#draining.keys()];
    await this.#options.interfaceAddresses?.removeOthers(wanted, this.#signal);
  }

  /** Resolves when none of these drains any more. */
  async drained(addresses: readonly IpAddress[]): Promise<void> {
    await Promise.all(addresses.map((address) => this.#draining.get(address)));
  }

  /** Never rejects. */
  async #drain(addresses: readonly IpAddress[]): Promise<void> {
    try {
      await waitForDrain(addresses, this.#options, this.#signal);
    } catch (error) {
      if (!this.#signal.aborted) this.#options.log.warn('cannot see whether connections have ended', { error });
    }
  }
}
