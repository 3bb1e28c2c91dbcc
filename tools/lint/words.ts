import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execaSync } from 'execa';
import { root } from '../workspace.ts';
import { wordList, type WordPattern } from './word-list.ts';

/** A line of prose that matches a pattern of the word list. */
export interface WordHit {
  /** Relative to the checkout. */
  readonly path: string;
  /** From 1. */
  readonly line: number;
  readonly pattern: WordPattern;
  readonly text: string;
}

/** Result of one file, or of a folder. */
export interface WordCount {
  readonly hits: readonly WordHit[];
  /** Lines that hold a comment, a text in quotes or, in Markdown, anything but indented code. */
  readonly proseLines: number;
  /** Markers without a reason and markers without a hit, as `file:line: why`. */
  readonly markerFaults: readonly string[];
}

/** The file of allowed hits, `words.json`. */
export interface AllowedWords {
  /** Hits per 1,000 lines of prose that each folder should reach. */
  readonly goal: number;
  /** Number of hits by folder. It may only fall. */
  readonly folders: Readonly<Record<string, number>>;
}

const tablePath = 'tools/lint/words.json';
const sources = /\.(?:ts|md|c|h|cc|ya?ml|sh)$|^dev$/;
/** Recorded or generated text, and the word list with its test. */
const exempt =
  /(?:^|\/)(?:goldens?|fixtures|generated|dist|build)\/|\.api\.md$|LICENSE|package-lock|^docs\/reference\/(?!glossary|kube-proxy-behaviour)|^tools\/lint\/word(?:-list|s\.test)\.ts$/;

/** Exempts its own line, or the next one if its line has nothing else: `wording: REASON` in a comment. */
const marker = /(?:\/\/|\/\*|#|<!--) wording:(.*?)(?:-->|\*\/|$)/;

/** Lines of a text that people read, with their hits. */
export function countWords(path: string, text: string): WordCount {
  const hits: WordHit[] = [];
  const markerFaults: string[] = [];
  let proseLines = 0;
  let pending: number | undefined; // line of a marker that exempts this line
  for (const [index, raw] of text.split('\n').entries()) {
    const line = index + 1;
    const [found, reason] = marker.exec(raw) ?? [];
    const rest = found === undefined ? raw : raw.replace(found, '');
    if (found !== undefined && reason?.trim() === '') markerFaults.push(`${path}:${line}: the marker has no reason`);
    if (found !== undefined && rest.trim() === '') {
      pending = line;
      continue;
    }
    const exemptedBy = found === undefined ? pending : line;
    pending = undefined;
    const matching = isProse(path, raw) ? wordList.filter(({ pattern }) => pattern.test(rest)) : [];
    if (isProse(path, raw)) proseLines += 1;
    if (exemptedBy === undefined) hits.push(...matching.map((pattern) => ({ path, line, pattern, text: rest.trim() })));
    else if (matching.length === 0) markerFaults.push(`${path}:${exemptedBy}: the marker exempts nothing; remove it`);
  }
  return { hits, proseLines, markerFaults };
}

function isProse(path: string, line: string): boolean {
  if (path.endsWith('.md')) return line.trim() !== '' && !line.startsWith('    ');
  return /^\s*(?:\/\/|\/\*|\*|#)|\/\/\s/.test(line) || hasSentence(line, "'") || hasSentence(line, '`');
}

/** Whether three words or more stand between two quotes. */
function hasSentence(line: string, quote: string): boolean {
  return line
    .split(quote)
    .slice(1, -1)
    .some((inner) => (inner.match(/\s/g)?.length ?? 0) >= 2);
}

/** Counts by folder, for all files of the checkout that git does not ignore, or for those below some paths. */
export function countFolders(paths: readonly string[] = []): ReadonlyMap<string, WordCount> {
  const list = ['ls-files', '--cached', '--others', '--exclude-standard', '--deduplicate', '--', ...paths];
  const folders = new Map<string, WordCount>();
  for (const path of execaSync('git', list, { cwd: root, lines: true }).stdout) {
    if (!sources.test(path) || exempt.test(path)) continue;
    const text = readIfThere(join(root, path));
    if (text === undefined) continue;
    const count = countWords(path, text);
    const before = folders.get(folderOf(path));
    folders.set(folderOf(path), before === undefined ? count : addCounts(before, count));
  }
  return folders;
}

/** A file that is deleted but not yet staged is still listed by git. */
function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** A package with its tests, or the first folder of the path; `.` for files at the root. */
export function folderOf(path: string): string {
  const [first = '', second = '', third] = path.split('/');
  if (second === '') return '.';
  const isSplit = /^(?:apps|packages|examples)$/.test(first) && third !== undefined;
  return isSplit ? `${first}/${second}` : first;
}

function addCounts(a: WordCount, b: WordCount): WordCount {
  return {
    hits: [...a.hits, ...b.hits],
    proseLines: a.proseLines + b.proseLines,
    markerFaults: [...a.markerFaults, ...b.markerFaults],
  };
}

/** Hits per 1,000 lines of prose. */
export function densityOf({ hits, proseLines }: Pick<WordCount, 'hits' | 'proseLines'>): number {
  return (1000 * hits.length) / Math.max(1, proseLines);
}

/** A hit as one line: where it is, why it is one, and what to write. */
export function describeHit({ path, line, pattern, text }: WordHit): string {
  return `${path}:${line}: wording "${pattern.name}" ${pattern.reason}; write ${pattern.instead}\n    ${text.slice(0, 160)}`;
}

/** Result of a comparison: faults fail the lint, advice does not. */
export interface Verdict {
  readonly faults: readonly string[];
  readonly advice: readonly string[];
}

/**
 * Compares counts with the table. `changedLines` has the lines that differ from the main branch, as `path:line`; hits on them are listed
 * as new. Without any such hit all hits of the folder are listed.
 */
export function judge(
  counts: ReadonlyMap<string, WordCount>,
  { goal, folders }: AllowedWords,
  changedLines: () => ReadonlySet<string>,
): Verdict {
  const faults: string[] = [];
  const advice: string[] = [];
  for (const [folder, count] of counts) {
    faults.push(...count.markerFaults);
    const allowed = folders[folder] ?? 0;
    if (count.hits.length < allowed) {
      advice.push(
        `${folder}: ${count.hits.length} hits of the word list, ${allowed} allowed; lower it: ${writeCommand}`,
      );
    }
    if (count.hits.length <= allowed) continue;
    const changed = changedLines();
    const fresh = count.hits.filter(({ path, line }) => changed.has(`${path}:${line}`));
    faults.push(...(fresh.length > 0 ? fresh : count.hits).map(describeHit));
    const density = densityOf(count).toFixed(1);
    faults.push(
      `${folder}: ${count.hits.length} hits of the word list, ${allowed} allowed (${density} per 1,000 lines of prose; the goal is ${goal})`,
    );
  }
  return { faults, advice };
}

const writeCommand = 'node --conditions=@switchyard/source tools/lint/run.ts --write';

/** The table with lower numbers where there are fewer hits, and with rows for new folders; a number is raised only by hand. */
export function lowered(counts: ReadonlyMap<string, WordCount>, { goal, folders }: AllowedWords): AllowedWords {
  const rows = [...counts].map(([folder, { hits }]): [string, number] => [
    folder,
    Math.min(hits.length, folders[folder] ?? hits.length),
  ]);
  return { goal, folders: Object.fromEntries(rows.toSorted(([a], [b]) => (a < b ? -1 : 1))) };
}

/** Reads the table; `{}` in the place of `folders` makes `--write` begin anew. */
export function readAllowed(): AllowedWords {
  return JSON.parse(readFileSync(join(root, tablePath), 'utf8')) as AllowedWords;
}

/** Writes the table as oxfmt formats it. */
export function writeAllowed(table: AllowedWords): void {
  writeFileSync(join(root, tablePath), `${JSON.stringify(table, undefined, 2)}\n`);
}

/** Lines that differ from the main branch, or from the last commit on it, as `path:line`. Empty where git has no main branch. */
export function linesChanged(): ReadonlySet<string> {
  const git = (...args: readonly string[]): string =>
    execaSync('git', args, { cwd: root, reject: false, stripFinalNewline: true }).stdout;
  const base = git('merge-base', 'HEAD', 'origin/main') || git('merge-base', 'HEAD', 'main') || 'HEAD';
  return parseDiff(git('diff', '--unified=0', '--no-color', '--no-ext-diff', base));
}

/** Lines that a diff without context adds, as `path:line`. */
export function parseDiff(diff: string): ReadonlySet<string> {
  const lines = new Set<string>();
  let path = '';
  for (const text of diff.split('\n')) {
    path = /^\+\+\+ b\/(.*)/.exec(text)?.[1] ?? path;
    const [, start, length = '1'] = /^@@ \S+ \+(\d+)(?:,(\d+))? @@/.exec(text) ?? [];
    if (start === undefined) continue;
    for (let at = 0; at < Number(length); at += 1) lines.add(`${path}:${Number(start) + at}`);
  }
  return lines;
}
