import * as check from '../../base/argument.ts';
import { asError, HostError, messageOf } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { type Clock, type Millis, millis, type Random, seconds } from '../../base/time.ts';
import { Lease, type LeaseOptions } from './lease.ts';
import { within } from '../../base/abortable.ts';

/** Timings of leadership; names and defaults as in kube-controller-manager. `leaseDuration` > `renewDeadline` > 1.2 `retryPeriod`. */
export interface LeaderTimings {
  /** Time for which other candidates must see the lease unchanged before they may take it. Whole seconds. */
  readonly leaseDuration: Millis;
  /** Time without a renewal after which a leader ends its work. */
  readonly renewDeadline: Millis;
  readonly retryPeriod: Millis;
}

/** 15 s, 10 s, 2 s. */
export const defaultLeaderTimings: LeaderTimings = {
  leaseDuration: seconds(15),
  renewDeadline: seconds(10),
  retryPeriod: seconds(2),
};

/** Options of a candidate. */
export interface LeaderOptions extends Omit<LeaseOptions, 'duration'> {
  readonly random: Random;
  readonly log: Logger;
  /** Default: `defaultLeaderTimings`. */
  readonly timings?: LeaderTimings;
}

/** Random part of a wait for the lease, in retry periods, so that candidates do not synchronise. */
const jitter = 1.2;

/**
 * Runs `work` while this process holds the lease. Losing the lease (another candidate has it, or no renewal succeeded for
 * `renewDeadline`) aborts the signal of `work`; once `work` has ended, this process is a candidate again. When `signal`
 * aborts, `work` ends first, then the lease is released. Resolves when `work` resolves; rejects with its error, or with
 * `signal.reason`, or with `UsageError` for arguments of other types. Waits while the API server does not answer.
 */
export async function runAsLeader(
  options: LeaderOptions,
  work: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  checkArguments(options, work, signal);
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

function checkArguments(options: unknown, work: unknown, signal: unknown): void {
  const timings = {
    leaseDuration: check.requireNumber,
    renewDeadline: check.requireNumber,
    retryPeriod: check.requireNumber,
  };
  check.requireFields('runAsLeader: options', options, {
    send: check.requireFunction,
    namespace: check.requireText,
    name: check.requireText,
    identity: check.requireText,
    clock: check.requireClock,
    random: check.requireFunction,
    log: check.requireLogger,
    timings: check.optional(check.withFields(timings)),
  });
  check.requireFunction('runAsLeader: work', work);
  check.requireSignal('runAsLeader: signal', signal);
}

async function acquire(lease: Lease, options: LeaderOptions, signal: AbortSignal): Promise<void> {
  const { clock, random, log, timings = defaultLeaderTimings } = options;
  let logged: string | undefined;
  for (;;) {
    const { status, reason } = await attempt(lease, { clock, limit: timings.renewDeadline }, signal);
    if (status === 'held') return;
    if (status === 'other' && reason !== '' && reason !== logged) log.info('waiting for the lease', { holder: reason });
    if (status === 'failed' && logged === undefined) log.warn('cannot read the lease; will be tried again', { reason });
    if (reason !== '') logged = reason;
    await clock.sleep(millis(timings.retryPeriod * (1 + jitter * random())), signal);
  }
}

interface Attempt {
  readonly status: 'held' | 'other' | 'failed';
  /** The holder (empty: unknown), or the reason of the failure. */
  readonly reason: string;
}

interface Limit {
  readonly clock: Clock;
  readonly limit: Millis;
}

/** Makes one attempt, for `limit` at most. Rejects only with `signal.reason`. */
async function attempt(lease: Lease, limit: Limit, signal: AbortSignal): Promise<Attempt> {
  try {
    const result = await limited(limit, (stop) => lease.attempt(stop), signal);
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
  // Renews until the work has ended, not only until the abort: no other candidate may start before.
  let lostBecause: string | undefined;
  const renewing = renew(lease, options, done.signal).then((reason) => {
    lostBecause = reason;
    if (reason !== undefined) lost.abort(new HostError('lease.lost', `the lease is lost: ${reason}`));
  });
  const [result] = await Promise.allSettled([working, renewing]);
  // An error of aborted work does not matter.
  if (lostBecause !== undefined) return { status: 'lost', reason: lostBecause };
  const limit = { clock, limit: timings.retryPeriod };
  const never = new AbortController().signal;
  await limited(limit, (stop) => lease.release(stop), never).catch(() => undefined); // it expires
  signal.throwIfAborted();
  if (result.status === 'rejected') throw asError(result.reason);
  return { status: 'ended' };
}

/** Renews until `done`; resolves with the reason of the loss, or with undefined. */
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

function limited<T>(given: Limit, use: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
  const late = (): HostError => new HostError('lease.slow', `no answer within ${given.limit / 1000} s`);
  return within({ ...given, late }, use, signal);
}
