import type { CellSelector } from '../matrix/selector.ts';

/** An e2e test of upstream, or several, that does not run in some cells. */
export interface SkipEntry extends CellSelector {
  /**
   * Parts of the test's name in their order, each taken literally. Between them anything may stand: upstream writes labels such as [Slow]
   * into the middle of names, and moves them from release to release.
   */
  readonly test: readonly string[];
  readonly reason: string;
  /** Link to an explanation. */
  readonly link: string;
  /** `e2e/upstream-skips/services.yaml:3:5`. */
  readonly place: string;
}
