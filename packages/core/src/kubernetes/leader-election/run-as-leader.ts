import { asError, HostError, messageOf } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { type Clock, type Millis, millis, type Random, seconds } from '../../base/time.ts';
import { Lease, type LeaseOptions } from './lease.ts';

/** How leadership is timed; names and defaults as in kube-controller-manager. `leaseDuration` > `renewDeadline` > 1.2 `retryPeriod`. */
export interface LeaderTimings {
  /** Others may take a lease that they saw unchanged for so long. Whole seconds. */
  readonly leaseDuration: Millis;
  /** A leader that could not renew for so long ends its work. */
  readonly renewDeadline: Millis;
  readonly retryPeriod: Millis;
}

/** 15 s, 10 s, 2 s. */
export const defaultLeaderTimings: LeaderTimings = {
  leaseDuration: seconds(15),
  renewDeadline: seconds(10),
  retryPeriod: seconds(2),
};

/** Which lease, who we are, and with what. */
export interface LeaderOptions extends Omit<LeaseOptions, 'duration'> {
  readonly random: Random;
  readonly log: Logger;
  /** Default: `defaultLeaderTimings`. */
  readonly timings?: LeaderTimings;
}

/** Waits for a lease are drawn from so many times the retry period beyond the first, so that candidates do not march in step. */
const jitter = 1.2;

/**
 * Does `work` while we hold the lease, and nothing while we do not. Losing the lease (somebody else has it, or it could
 * not be renewed for `renewDeadline`) aborts the signal that `work` was given; when it has ended, we are a candidate again. On
 * `signal`, `work` ends first, then the lease is given back. Resolves when `work` ends by itself; rejects with what it
 * rejects with, and with `signal.reason`. An API server that is away is waited for.
 */
export async function runAsLeader(
  options: LeaderOptions,
  work: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const { log, identity, namespace, name, timings = defaultLeaderTimings } = options;
  const lease = new Lease({ ...options, duration: timings.leaseDuration });
  const where = { lease: `${namespace}/${name}`, identity };
  for (;;) {
    await acquire(lease, options, signal);
    log.info('leading', where);
    const end = await lead({ lease, options, work }, signal);
    if (end.status === 'lost') log.warn('no longer leading; waiting for the lease', { ...where, reason: end.reason });
    signal.throwIfAborted();
    if (end.status === 'ended') return;
  }
}

async function acquire(lease: Lease, options: LeaderOptions, signal: AbortSignal): Promise<void> {
  const { clock, random, log, timings = defaultLeaderTimings } = options;
  let told: string | undefined;
  for (;;) {
    const { status, reason } = await attempt(lease, { clock, limit: timings.renewDeadline }, signal);
    if (status === 'held') return;
    if (status === 'other' && reason !== '' && reason !== told) log.info('waiting for the lease', { holder: reason });
    if (status === 'failed' && told === undefined)
      log.warn('cannot ask for the lease; will be tried again', { reason });
    if (reason !== '') told = reason;
    await clock.sleep(millis(timings.retryPeriod * (1 + jitter * random())), signal);
  }
}

interface Attempt {
  readonly status: 'held' | 'other' | 'failed';
  /** Who holds it (empty: not known), or why it failed. */
  readonly reason: string;
}

interface Limit {
  readonly clock: Clock;
  readonly limit: Millis;
}

/** One attempt, given up after `limit`. Rejects only with `signal.reason`. */
async function attempt(lease: Lease, limit: Limit, signal: AbortSignal): Promise<Attempt> {
  try {
    const result = await within(limit, (stop) => lease.attempt(stop), signal);
    return { status: result.status, reason: result.status === 'other' ? result.holder : '' };
  } catch (error) {
    signal.throwIfAborted();
    return { status: 'failed', reason: messageOf(error) };
  }
}

interface Leadership {
  readonly lease: Lease;
  readonly options: LeaderOptions;
  readonly work: (signal: AbortSignal) => Promise<void>;
}

type LeadershipEnd = { readonly status: 'ended' } | { readonly status: 'lost'; readonly reason: string };

async function lead({ lease, options, work }: Leadership, signal: AbortSignal): Promise<LeadershipEnd> {
  const { clock, timings = defaultLeaderTimings } = options;
  const lost = new AbortController();
  const done = new AbortController();
  const working = work(AbortSignal.any([signal, lost.signal])).finally(() => done.abort());
  // Renewed until the work has ended, not only until it is told to: nobody else may begin before.
  let lostBecause: string | undefined;
  const renewing = renew(lease, options, done.signal).then((reason) => {
    lostBecause = reason;
    if (reason !== undefined) lost.abort(new HostError('lease.lost', `the lease is lost: ${reason}`));
  });
  const [result] = await Promise.allSettled([working, renewing]);
  // What it says about being cut short is of no interest.
  if (lostBecause !== undefined) return { status: 'lost', reason: lostBecause };
  const limit = { clock, limit: timings.retryPeriod };
  await within(limit, (stop) => lease.release(stop), new AbortController().signal).catch(() => undefined); // it runs out by itself
  signal.throwIfAborted();
  if (result.status === 'rejected') throw asError(result.reason);
  return { status: 'ended' };
}

/** Renews until `done`; resolves with why the lease is lost, or with undefined. */
async function renew(lease: Lease, options: LeaderOptions, done: AbortSignal): Promise<string | undefined> {
  const { clock, timings = defaultLeaderTimings } = options;
  let renewedAt = clock.monotonic();
  try {
    for (;;) {
      const left = timings.renewDeadline - (clock.monotonic() - renewedAt);
      await clock.sleep(millis(Math.min(timings.retryPeriod, Math.max(0, left))), done);
      const askedAt = clock.monotonic();
      const limit = millis(Math.max(1, timings.renewDeadline - (askedAt - renewedAt)));
      const { status, reason } = await attempt(lease, { clock, limit }, done);
      if (status === 'held') renewedAt = askedAt;
      else if (status === 'other' && reason !== '') return `${reason} has it`;
      else if (clock.monotonic() - renewedAt >= timings.renewDeadline) {
        return `not renewed within ${timings.renewDeadline / 1000} s: ${reason || 'others keep changing it'}`;
      }
    }
  } catch (error) {
    if (done.aborted) return undefined;
    throw error;
  }
}

/** Calls `use` with a signal that aborts after `limit` as well. */
async function within<T>(
  { clock, limit }: Limit,
  use: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const over = new AbortController();
  const enough = new AbortController();
  const timer = clock.sleep(limit, AbortSignal.any([signal, enough.signal])).then(
    () => over.abort(new HostError('lease.slow', `no answer within ${limit / 1000} s`)),
    () => undefined,
  );
  try {
    return await use(AbortSignal.any([signal, over.signal]));
  } finally {
    enough.abort();
    await timer;
  }
}
