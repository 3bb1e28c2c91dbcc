import { ApiServerError } from '../../base/errors.ts';
import { type Millis, seconds } from '../../base/time.ts';

/** Contents of a Lease (coordination.k8s.io/v1). */
export interface LeaseRecord {
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

/** A record and its resource version. */
export interface StoredLease {
  readonly resourceVersion: string;
  readonly record: LeaseRecord;
  /** Labels, annotations and other metadata, which writes preserve. */
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** Namespace and name of a lease. */
export interface LeaseName {
  readonly namespace: string;
  readonly name: string;
}

/** Returns the object for a POST, or for a PUT that must fail if the lease has changed since `before`. */
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

/** Parses the body of an answer. Throws `ApiServerError` when it is no Lease; missing fields become empty or zero. */
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
