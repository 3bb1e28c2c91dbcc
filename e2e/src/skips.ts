import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type CellSelector, isSelected, readSelector, selectorFields } from './matrix.ts';
import { type Field, fieldFault, parseFields, readList, readObject, readText } from './fields.ts';
import type { Cell } from './cell.ts';

/** An e2e test of upstream, or several, that does not run in some cells. */
export interface SkipEntry extends CellSelector {
  /**
   * Parts of the test's name in their order, each taken literally. Between them anything may stand: upstream writes labels such as [Slow]
   * into the middle of names, and moves them from release to release.
   */
  readonly test: readonly string[];
  readonly reason: string;
  readonly link: string;
  /** `e2e/upstream-skips/services.yaml:3:5`. */
  readonly place: string;
}

/** Reads all YAML files of a folder, in the order of their names. Throws `ConfigError` with the place of the first fault. */
export async function readSkipFolder(folder: string): Promise<readonly SkipEntry[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.yaml')).sort();
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
  return names.flatMap((name, index) => readSkips(`${basename(folder)}/${name}`, texts[index] ?? ''));
}

export function readSkips(file: string, text: string): readonly SkipEntry[] {
  return readList(parseFields(file, text), readEntry);
}

function readEntry(field: Field): SkipEntry {
  const fields = readObject(field, ['test', 'reason', 'link', 'cells']);
  return {
    ...(fields.cells.value === undefined ? {} : readSelector(readObject(fields.cells, selectorFields))),
    test: readParts(fields.test),
    reason: readText(fields.reason, /\S+\s+\S+\s+\S+/, 'a reason, in words'),
    link: readText(fields.link, /^https:\/\/\S+$/, 'a link that begins with https://'),
    place: field.place,
  };
}

function readParts(field: Field): readonly string[] {
  const part = (item: Field): string => readText(item, /\S{2,}/, "a part of a test's name");
  const parts = typeof field.value === 'string' ? [part(field)] : readList(field, part);
  if (parts.length === 0) throw fieldFault(field, "at least one part of a test's name");
  return parts;
}

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
