import { type Millis, millis, seconds } from '../base/time.ts';
import type { BackOffBounds } from '../base/back-off.ts';

/** How patient a reflector is. */
export interface ReflectorTimings {
  readonly backOff: BackOffBounds;
  /** Time limit of a connection attempt. The kernel would retry for two minutes, at growing intervals. */
  readonly connect: Millis;
  /** Range of the requested duration of a watch; each is random, so that watches do not end together. */
  readonly watchTimeout: { readonly min: Millis; readonly max: Millis };
  /** Longest silence of a watch. Bookmarks arrive about once a minute. */
  readonly inactivity: Millis;
  /** Longest silence while initial events are sent. */
  readonly initialInactivity: Millis;
  /** A shorter watch without events counts as a failure. */
  readonly shortWatch: Millis;
  /** Longest wait before the next request for a resource that the server does not know. */
  readonly absentRecheck: Millis;
}

/** The timings of a node agent. */
export const defaultTimings: ReflectorTimings = {
  backOff: { first: millis(200), max: seconds(30) },
  connect: seconds(10),
  watchTimeout: { min: seconds(300), max: seconds(600) },
  inactivity: seconds(130),
  initialInactivity: seconds(30),
  shortWatch: seconds(1),
  absentRecheck: seconds(300),
};
