import { asError } from '@switchyard/core';

/** What became of a removal, in words. */
export interface Removal {
  readonly removed: readonly string[];
  /** What stays though it belongs to what was to go, and why. */
  readonly kept: readonly string[];
  /** What was not looked at, and why. */
  readonly skipped: readonly string[];
  readonly failures: readonly Error[];
}

/** Nothing was found. */
export const nothingRemoved: Removal = { removed: [], kept: [], skipped: [], failures: [] };

/** One report out of several. */
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

/** One line; a clean-up, unlike the agent, tries nothing again. */
function failureText({ message }: Error): string {
  return message
    .trim()
    .replace(/; will be tried again$/, '')
    .replaceAll(/\s*\n\s*/g, ' | ');
}

/** Turns what a part throws into a failure of it; an abort is thrown on. */
export async function removalOf(part: () => Promise<Removal>, signal: AbortSignal): Promise<Removal> {
  try {
    return await part();
  } catch (error) {
    signal.throwIfAborted();
    return { ...nothingRemoved, failures: [asError(error)] };
  }
}
