/** What a cell's tests found; a step adds to it. */
export interface Findings {
  /** One line each, of cases and tests that failed: the proxy is at fault, or the test. */
  readonly failures: string[];
  /** Counts and skips, for the summary. */
  readonly notes: string[];
}
