import { objectArgument, wrongArgument } from './argument.ts';
import { type Millis, millis, type Random } from './time.ts';

/** Bounds of a back-off. */
export interface BackOffBounds {
  readonly first: Millis;
  readonly max: Millis;
}

/** Growing waits between failed attempts. One owner; not shared. */
export interface BackOff {
  /** The next wait: doubled each time up to `max`, half of it random, so that many nodes do not synchronise. */
  next(): Millis;
  /** Notes a success: the next wait is short again. */
  reset(): void;
}

/** Returns a back-off that starts at `first`. Throws `UsageError` unless both bounds are times. */
export function newBackOff(bounds: BackOffBounds, random: Random): BackOff {
  objectArgument('newBackOff: bounds', bounds);
  if (typeof random !== 'function') throw wrongArgument('newBackOff: random', 'a function', random);
  const first = millis(bounds.first);
  const max = millis(bounds.max);
  let base: number = first;
  return {
    next() {
      const wait = base * (0.5 + random() / 2);
      base = Math.min(base * 2, max);
      return millis(wait);
    },
    reset() {
      base = first;
    },
  };
}
