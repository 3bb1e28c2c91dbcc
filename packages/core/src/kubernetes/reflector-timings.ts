import { type Millis, millis, seconds } from '../base/time.ts';
import type { BackOffBounds } from '../base/back-off.ts';

/** How patient a reflector is. */
export interface ReflectorTimings {
  readonly backOff: BackOffBounds;
  /** No connection after this long: packets vanish. The kernel would try for two minutes, ever more rarely. */
  readonly connect: Millis;
  /** What the server is asked to end a watch after; random in between, so that watches do not end together. */
  readonly watchTimeout: { readonly min: Millis; readonly max: Millis };
  /** A watch that is silent for longer is given up. Bookmarks come about once a minute. */
  readonly inactivity: Millis;
  /** The same while initial events are sent: there is no reason for silence then. */
  readonly initialInactivity: Millis;
  /** A watch that ends sooner and brought nothing counts as a failure. */
  readonly shortWatch: Millis;
  /** Longest wait before asking again for a resource the server does not know. */
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
