import { HostError } from '../base/errors.ts';
import type { IpFamily } from '../model/ip/address.ts';
import type {
  ApplyOutcome,
  ApplyRequest,
  BackendCapabilities,
  BackendObservers,
  DataplaneBackend,
} from '../engine/dataplane-backend.ts';
import type { Millis, Random } from '../base/time.ts';

/** One thing that can go wrong with one apply. */
export type Fault =
  /** Refused as a whole, nothing was written. */
  | { readonly kind: 'refused'; readonly retryAfter?: Millis }
  /** Written, but the answer got lost: reported as failed. */
  | { readonly kind: 'answerLost' }
  /** Another process empties the kernel, and the apply is refused. */
  | { readonly kind: 'flushed' }
  /** The backend breaks its promise and throws. */
  | { readonly kind: 'thrown'; readonly error: Error };

/**
 * Which applies go wrong: the first ones as listed (`undefined` goes well), the others by chance.
 */
export interface FaultPlan {
  readonly faults?: readonly (Fault | undefined)[];
  /** Share of the later applies that are refused, 0 (default) to 1. Needs `random`. */
  readonly rate?: number;
  readonly random?: Random;
}

/** A real backend (or an honest fake) on a bad day: everything passes through but what the plan spoils. */
export class FaultyBackend implements DataplaneBackend {
  readonly #inner: DataplaneBackend;
  readonly #plan: FaultPlan;
  #calls = 0;

  constructor(inner: DataplaneBackend, plan: FaultPlan) {
    this.#inner = inner;
    this.#plan = plan;
  }

  get name(): string {
    return this.#inner.name;
  }

  get ipFamily(): IpFamily {
    return this.#inner.ipFamily;
  }

  get capabilities(): BackendCapabilities {
    return this.#inner.capabilities;
  }

  get observers(): BackendObservers {
    return this.#inner.observers;
  }

  /** Number of requested applies, failed ones included. */
  get calls(): number {
    return this.#calls;
  }

  async apply(request: ApplyRequest, signal: AbortSignal): Promise<ApplyOutcome> {
    const fault = this.#nextFault();
    if (fault === undefined) return this.#inner.apply(request, signal);
    const error = new HostError('faulty-backend.injected', `injected fault: ${fault.kind}`);
    switch (fault.kind) {
      case 'refused':
        return { status: 'failed', error, ...(fault.retryAfter === undefined ? {} : { retryAfter: fault.retryAfter }) };
      case 'answerLost':
        await this.#inner.apply(request, signal);
        return { status: 'failed', error };
      case 'flushed':
        await this.#inner.cleanup(signal);
        return { status: 'failed', error };
      case 'thrown':
        throw fault.error;
    }
  }

  cleanup(signal: AbortSignal): Promise<readonly string[]> {
    return this.#inner.cleanup(signal);
  }

  dump(signal: AbortSignal): Promise<string> {
    return this.#inner.dump(signal);
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.#inner[Symbol.asyncDispose]();
  }

  #nextFault(): Fault | undefined {
    const { faults = [], rate = 0, random } = this.#plan;
    const call = this.#calls++;
    if (call < faults.length) return faults[call];
    return random !== undefined && random() < rate ? { kind: 'refused' } : undefined;
  }
}
