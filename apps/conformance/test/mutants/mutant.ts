import type { BackendName } from '../../src/lab/proxy-program.ts';

/** One deliberate fault of our own: data, so that a test can detect when it no longer applies. */
export interface Mutant {
  /** `core/short-circuit-of-pods`: the part that it is in, then what it is about. Stable. */
  readonly id: string;
  /** The broken behaviour, in words. */
  readonly breaks: string;
  /** From the root of the checkout. C files are compiled, all others bundled. */
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  /** With which the suite is run. */
  readonly backend: BackendName;
}

/** The mutants of one file: `[id, what it breaks, backend, find, replace]`. */
export function mutantsOf(
  part: string,
  file: string,
  rows: readonly (readonly [id: string, breaks: string, backend: BackendName, find: string, replace: string])[],
): readonly Mutant[] {
  return rows.map(([id, breaks, backend, find, replace]) => ({
    id: `${part}/${id}`,
    breaks,
    file,
    find,
    replace,
    backend,
  }));
}
