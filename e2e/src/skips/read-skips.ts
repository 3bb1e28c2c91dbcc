import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type Field, parseFields } from '../document/field.ts';
import { fieldFault, readList, readObject, readText } from '../document/read-field.ts';
import { readSelector, selectorFields } from '../matrix/selector.ts';
import type { SkipEntry } from './skip-entry.ts';

/** Reads all YAML files of a folder, in the order of their names. Throws `ConfigError` with the place of the first fault. */
export async function readSkipFolder(folder: string): Promise<readonly SkipEntry[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.yaml')).sort();
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
  return names.flatMap((name, index) => readSkips(`${basename(folder)}/${name}`, texts[index] ?? ''));
}

/** Reads one file: a list. */
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
