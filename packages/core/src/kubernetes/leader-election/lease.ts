import { ApiServerError } from '../../base/errors.ts';
import { type Clock, type Millis, seconds } from '../../base/time.ts';
import { failureFrom } from '../api-failure.ts';
import { microTime } from '../micro-time.ts';
import type { JsonAnswer, SendJson } from '../send-json.ts';
import { leaseObject, type LeaseName, type LeaseRecord, parseLease, type StoredLease } from './lease-record.ts';

/** What a candidate needs to ask for a lease. */
export interface LeaseOptions extends LeaseName {
  readonly send: SendJson;
  /** Who we are; no other candidate may have the same. */
  readonly identity: string;
  /** What others are told: they may take the lease when they have seen it unchanged for so long. */
  readonly duration: Millis;
  readonly clock: Clock;
}

/** How one attempt to take or to renew the lease ended. */
export type LeaseAttempt =
  | { readonly status: 'held' }
  /** Somebody else holds it, or was faster. */
  | { readonly status: 'other'; readonly holder: string };

/**
 * One candidate's view of a lease, with the rules of client-go's leader election: a lease of somebody else may be taken only after
 * it was seen unchanged for its duration, by our own monotonic clock, and every write names the version it is based on. One
 * call at a time; all reject with `ApiServerError` when the server is away or refuses, which changes nothing.
 */
export class Lease {
  readonly #options: LeaseOptions;
  readonly #path: string;
  #observed: StoredLease | undefined;
  /** Monotonic; when `#observed` was first seen as it is. */
  #observedAt = 0;

  constructor(options: LeaseOptions) {
    const { namespace } = options;
    this.#options = options;
    this.#path = `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/leases`;
  }

  /** Takes the lease if it may be taken, renews it if it is ours. */
  async attempt(signal: AbortSignal): Promise<LeaseAttempt> {
    // What we wrote last is what is there, unless somebody broke in: no need to read first.
    if (this.#isOurs && this.#observed !== undefined) {
      if (await this.#put(this.#observed, this.#nextRecord(), signal)) return { status: 'held' };
    }
    const current = await this.#read(signal);
    if (current === undefined) return this.#create(signal);
    this.#observe(current);
    const { holder } = current.record;
    if (holder !== '' && !this.#isOurs && !this.#isOver) return { status: 'other', holder };
    if (await this.#put(current, this.#nextRecord(), signal)) return { status: 'held' };
    return { status: 'other', holder: '' };
  }

  /** Lets go of it, so that the next candidate need not wait. Does nothing if it is not ours. */
  async release(signal: AbortSignal): Promise<void> {
    if (!this.#isOurs || (await this.#empty(signal))) return;
    // A renewal that was broken off may have been written all the same.
    const current = await this.#read(signal);
    if (current === undefined) return;
    this.#observe(current);
    if (this.#isOurs) await this.#empty(signal);
  }

  /** Writes that nobody holds it. False: somebody changed it first. */
  async #empty(signal: AbortSignal): Promise<boolean> {
    const before = this.#observed;
    if (before === undefined) return false;
    const now = microTime(this.#options.clock.now());
    return this.#put(before, { ...before.record, holder: '', duration: seconds(1), renewTime: now }, signal);
  }

  get #isOurs(): boolean {
    return this.#observed?.record.holder === this.#options.identity;
  }

  get #isOver(): boolean {
    const duration = this.#observed?.record.duration ?? 0;
    return this.#options.clock.monotonic() - this.#observedAt >= duration;
  }

  #observe(lease: StoredLease): void {
    if (lease.resourceVersion === this.#observed?.resourceVersion) return;
    this.#observed = lease;
    this.#observedAt = this.#options.clock.monotonic();
  }

  #nextRecord(): LeaseRecord {
    const { identity, duration, clock } = this.#options;
    const now = microTime(clock.now());
    const before = this.#observed?.record;
    if (before?.holder === identity) return { ...before, duration, renewTime: now };
    return {
      holder: identity,
      duration,
      acquireTime: now,
      renewTime: now,
      transitions: before === undefined ? 0 : before.transitions + 1,
    };
  }

  async #read(signal: AbortSignal): Promise<StoredLease | undefined> {
    const answer = await this.#options.send({ method: 'GET', path: this.#objectPath }, signal);
    return answer.status === 404 ? undefined : parseLease(this.#accepted('GET', answer));
  }

  async #create(signal: AbortSignal): Promise<LeaseAttempt> {
    this.#observed = undefined;
    const body = leaseObject(this.#options, this.#nextRecord(), undefined);
    const answer = await this.#options.send({ method: 'POST', path: this.#path, body }, signal);
    if (answer.status === 409) return { status: 'other', holder: '' };
    this.#observe(parseLease(this.#accepted('POST', answer)));
    return { status: 'held' };
  }

  /** False: somebody else changed it first. */
  async #put(before: StoredLease, record: LeaseRecord, signal: AbortSignal): Promise<boolean> {
    const body = leaseObject(this.#options, record, before);
    const answer = await this.#options.send({ method: 'PUT', path: this.#objectPath, body }, signal);
    if (answer.status === 409 || answer.status === 404) return false;
    this.#observe(parseLease(this.#accepted('PUT', answer)));
    return true;
  }

  get #objectPath(): string {
    return `${this.#path}/${encodeURIComponent(this.#options.name)}`;
  }

  #accepted(method: string, { status, body }: JsonAnswer): string {
    if (status < 300) return body;
    const request = `${method} ${this.#objectPath}`;
    if (status === 403) {
      const advice = 'grant "get", "create" and "update" on leases of coordination.k8s.io to this account';
      throw new ApiServerError('api.403', `${request}: answered 403; ${advice}; will be tried again`, {
        isRetryable: true,
        status,
      });
    }
    throw failureFrom({ request, status, body, retryAfter: undefined });
  }
}
