import type { Cell } from '../cell.ts';
import { isSelected } from '../matrix/selector.ts';
import type { SkipEntry } from './skip-entry.ts';

/** Selection of upstream's tests for a cell. */
export interface ChosenTests {
  /** Full names, sorted. */
  readonly run: readonly string[];
  readonly skipped: readonly { readonly name: string; readonly entry: SkipEntry }[];
  /** Entries for this cell that no test in focus matches: the test was removed or renamed. */
  readonly unused: readonly SkipEntry[];
  /** Beginnings of names that no test has: the tests were removed or renamed. */
  readonly unusedFocus: readonly string[];
}

/** `names` are all tests of the release; `focus` are beginnings of names. */
export function chooseTests(
  names: readonly string[],
  {
    focus,
    skips,
    cell,
  }: { readonly focus: readonly string[]; readonly skips: readonly SkipEntry[]; readonly cell: Cell },
): ChosenTests {
  const inFocus = [...new Set(names)].filter((name) => focus.some((start) => name.startsWith(start))).sort();
  const entries = skips.filter((entry) => isSelected(entry, cell));
  const matches = entries.map((entry) => ({ entry, pattern: new RegExp(patternOf(entry)) }));
  const skipped = inFocus.flatMap((name) => {
    const entry = matches.find(({ pattern }) => pattern.test(name))?.entry;
    return entry === undefined ? [] : [{ name, entry }];
  });
  const left = new Set(skipped.map(({ name }) => name));
  return {
    run: inFocus.filter((name) => !left.has(name)),
    skipped,
    unusedFocus: focus.filter((start) => !names.some((name) => name.startsWith(start))),
    unused: matches.filter(({ pattern }) => !inFocus.some((name) => pattern.test(name))).map(({ entry }) => entry),
  };
}

/** An entry as a regular expression which means the same in Go and in JavaScript. */
export function patternOf({ test }: Pick<SkipEntry, 'test'>): string {
  return test.map(literally).join('.*');
}

/** A text as a regular expression that matches it, in Go and in JavaScript. */
export function literally(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);
}
