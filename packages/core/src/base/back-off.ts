import { type Millis, millis, type Random } from './time.ts';

/** Bounds of a back-off. */
export interface BackOffBounds {
  readonly first: Millis;
  readonly max: Millis;
}

/** Growing waits between failed attempts. One owner; not shared. */
export interface BackOff {
  /** The next wait: doubled each time up to `max`, half of it random, so that a fleet does not march in step. */
  next(): Millis;
  /** An attempt went well: the next wait is a short one again. */
  reset(): void;
}

/** A back-off that starts at `first`. */
export function newBackOff({ first, max }: BackOffBounds, random: Random): BackOff {
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
