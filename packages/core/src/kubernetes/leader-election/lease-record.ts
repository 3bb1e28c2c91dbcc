import { ApiServerError } from '../../base/errors.ts';
import { type Millis, seconds } from '../../base/time.ts';

/** What a Lease says (coordination.k8s.io/v1). */
export interface LeaseRecord {
  /** Empty: nobody holds it. */
  readonly holder: string;
  /** How long others must see it unchanged before they may take it. */
  readonly duration: Millis;
  /** Times as they are on the wire; never compared with a clock of ours. */
  readonly acquireTime: string;
  readonly renewTime: string;
  /** How often it went from one holder to another. */
  readonly transitions: number;
}

/** A record and the version in which it was read or written. */
export interface StoredLease {
  readonly resourceVersion: string;
  readonly record: LeaseRecord;
  /** Labels, annotations and whatever else others put there: kept. */
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** Where a lease is. */
export interface LeaseName {
  readonly namespace: string;
  readonly name: string;
}

/** The object for a POST, or for a PUT that must fail if the lease is not what it was in `before`. */
export function leaseObject(
  { namespace, name }: LeaseName,
  record: LeaseRecord,
  before: StoredLease | undefined,
): object {
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

/** Reads the body of an answer. Throws `ApiServerError` when it is no Lease; fields that are missing are empty or zero. */
export function parseLease(body: string): StoredLease {
  const lease = objectOf(parseJson(body));
  const metadata = objectOf(lease['metadata']);
  const spec = objectOf(lease['spec']);
  if (lease['kind'] !== 'Lease' || typeof metadata['resourceVersion'] !== 'string') throw notLease(body);
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

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    throw notLease(body);
  }
}

function notLease(body: string): ApiServerError {
  const text = body.slice(0, 100);
  return new ApiServerError('api.lease', `the answer is no Lease: ${text}; will be tried again`, { isRetryable: true });
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
