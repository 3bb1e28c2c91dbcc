import { ApiServerError } from '../../base/errors.ts';
import { type Clock, type Millis, seconds } from '../../base/time.ts';
import { failureFrom } from '../api-failure.ts';
import { microTime } from '../micro-time.ts';
import type { JsonAnswer, SendJson } from '../send-json.ts';

/** Contents of a Lease (coordination.k8s.io/v1). */
interface LeaseRecord {
  /** Identity of the holder; empty when the lease is free. */
  readonly holder: string;
  /** Time for which other candidates must see it unchanged before they may take it. */
  readonly duration: Millis;
  /** Times as on the wire; never compared with a local clock. */
  readonly acquireTime: string;
  readonly renewTime: string;
  /** Number of changes of the holder. */
  readonly transitions: number;
}

interface StoredLease {
  readonly resourceVersion: string;
  readonly record: LeaseRecord;
  /** Labels, annotations and other metadata, which writes preserve. */
  readonly metadata: Readonly<Record<string, unknown>>;
}

interface LeaseName {
  readonly namespace: string;
  readonly name: string;
}

/** Returns the object for a POST, or for a PUT that must fail if the lease has changed since `before`. */
function leaseObject({ namespace, name }: LeaseName, record: LeaseRecord, before: StoredLease | undefined): object {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { ...before?.metadata, namespace, name },
    spec: {
      holderIdentity: record.holder,
      leaseDurationSeconds: Math.max(1, Math.round(record.duration / 1000)),
      acquireTime: record.acquireTime,
      renewTime: record.renewTime,
      leaseTransitions: record.transitions,
    },
  };
}

/** Parses the body of an answer. Throws `ApiServerError` when it is no Lease; missing fields become empty or zero. */
function parseLease(body: string): StoredLease {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    // no Lease
  }
  const lease = objectOf(parsed);
  const metadata = objectOf(lease['metadata']);
  const spec = objectOf(lease['spec']);
  if (lease['kind'] !== 'Lease' || typeof metadata['resourceVersion'] !== 'string') {
    const message = `the answer is no Lease: ${body.slice(0, 100)}; will be tried again`;
    throw new ApiServerError('api.lease', message, { isRetryable: true });
  }
  return {
    resourceVersion: metadata['resourceVersion'],
    metadata,
    record: {
      holder: textOf(spec['holderIdentity']),
      duration: seconds(numberOf(spec['leaseDurationSeconds'])),
      acquireTime: textOf(spec['acquireTime']),
      renewTime: textOf(spec['renewTime']),
      transitions: numberOf(spec['leaseTransitions']),
    },
  };
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function numberOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}

/** Options of a candidate for a lease. */
export interface LeaseOptions extends LeaseName {
  readonly send: SendJson;
  /** Identity of this candidate, unique among all candidates. */
  readonly identity: string;
  /** Duration written to the lease: other candidates may take it after seeing it unchanged for this time. */
  readonly duration: Millis;
  readonly clock: Clock;
}

type LeaseAttempt =
  | { readonly status: 'held' }
  /** Another candidate holds it, or wrote first; `holder` is empty if unknown. */
  | { readonly status: 'other'; readonly holder: string };

/**
 * One candidate's view of a lease, with the rules of client-go's leader election. The lease of another holder may be taken only
 * after it was seen unchanged for its duration, by the local monotonic clock. Every write names the version it is based on.
 * One call at a time. All reject with `ApiServerError` when the server does not answer or refuses, which changes nothing.
 */
export class Lease {
  readonly #options: LeaseOptions;
  readonly #path: string;
  #observed: StoredLease | undefined;
  /** Monotonic: time at which the present `#observed` was first seen. */
  #observedAt = 0;

  constructor(options: LeaseOptions) {
    const { namespace } = options;
    this.#options = options;
    this.#path = `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/leases`;
  }

  /** Takes the lease if allowed, renews it if this candidate holds it. */
  async attempt(signal: AbortSignal): Promise<LeaseAttempt> {
    // The last write is still current unless another client changed the lease: no need to read first.
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

  /** Releases the lease, so that the next candidate need not wait. Does nothing if this candidate does not hold it. */
  async release(signal: AbortSignal): Promise<void> {
    if (!this.#isOurs || (await this.#empty(signal))) return;
    // The server may have stored an aborted renewal.
    const current = await this.#read(signal);
    if (current === undefined) return;
    this.#observe(current);
    if (this.#isOurs) await this.#empty(signal);
  }

  /** Writes the lease without a holder. False: another client changed it first. */
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

  /** Writes the record. False: another client changed the lease first. */
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
