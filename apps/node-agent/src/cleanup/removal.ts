import { asError } from '@switchyard/core';

/** Outcome of a removal as text. */
export interface Removal {
  readonly removed: readonly string[];
  /** State that stays, with the reason. */
  readonly kept: readonly string[];
  /** Places that were not examined, with the reason. */
  readonly skipped: readonly string[];
  readonly failures: readonly Error[];
}

/** Nothing was found. */
export const nothingRemoved: Removal = { removed: [], kept: [], skipped: [], failures: [] };

/** Joins several outcomes. */
export function joinRemovals(removals: readonly Removal[]): Removal {
  return {
    removed: removals.flatMap(({ removed }) => removed),
    kept: removals.flatMap(({ kept }) => kept),
    skipped: removals.flatMap(({ skipped }) => skipped),
    failures: removals.flatMap(({ failures }) => failures),
  };
}

/** The report as an operator reads it; always at least one line. */
export function removalText({ removed, kept, skipped, failures }: Removal): string {
  const lines = [
    ...removed.map((what) => `removed: ${what}`),
    ...kept.map((what) => `kept: ${what}`),
    ...skipped.map((what) => `not looked at: ${what}`),
    ...failures.map((error) => `failed: ${failureText(error)}`),
  ];
  const isClean = removed.length + kept.length + failures.length === 0;
  return `${[...(isClean ? ['nothing to remove'] : []), ...lines].join('\n')}\n`;
}

/** Error on one line, without the announcement of a retry: a clean-up does not retry. */
function failureText({ message }: Error): string {
  return message
    .trim()
    .replace(/; will be tried again$/, '')
    .replaceAll(/\s*\n\s*/g, ' | ');
}

/** Runs a part; an error becomes a failure of its outcome, except for an abort, which is rethrown. */
export async function removalOf(part: () => Promise<Removal>, signal: AbortSignal): Promise<Removal> {
  try {
    return await part();
  } catch (error) {
    signal.throwIfAborted();
    return { ...nothingRemoved, failures: [asError(error)] };
  }
}
