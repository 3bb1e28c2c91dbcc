import { objectArgument, requireText } from '../base/argument.ts';
import { messageOf } from '../base/errors.ts';
import {
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  parseAllDocuments,
  visit,
  type Alias,
  type Document,
  type Node,
  type YAMLParseError,
} from 'yaml';

/** A syntax error and its place; lines and columns count from 1. */
export interface YamlError {
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

/** One document of a YAML text (JSON is YAML). */
export interface YamlDocument {
  /** Plain data; undefined when there are errors. Null for an empty document. */
  readonly value: unknown;
  readonly errors: readonly YamlError[];
  /** With `duplicateKeys: 'keep'`: repeated keys of one object, at the place of the second. */
  readonly duplicates: readonly YamlError[];
  /** Returns the place of the value at `path`, or of its nearest existing parent. */
  locate(path: readonly (string | number)[]): { readonly line: number; readonly column: number };
}

const keyPattern = /^(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s:]+)/;

interface YamlOptions {
  /** `keep`: the last of repeated keys in one object counts. Default: `refuse`. */
  readonly duplicateKeys?: 'keep' | 'refuse';
}

/** Parses all documents of a text and returns syntax errors with their places. Throws `UsageError` for what is no text. */
export function parseYaml(text: string, options: YamlOptions = {}): readonly YamlDocument[] {
  requireText('parseYaml: text', text);
  const { duplicateKeys = 'refuse' } = objectArgument('parseYaml: options', options);
  const lines = new LineCounter();
  const parsed = parseAllDocuments(text, { lineCounter: lines, prettyErrors: false });
  const documents: readonly Document[] = 'empty' in parsed ? [] : parsed;
  return documents.map((document) => {
    const isKept = ({ code }: YAMLParseError): boolean => duplicateKeys === 'keep' && code === 'DUPLICATE_KEY';
    const errorOf = ({ pos, message }: YAMLParseError): YamlError => ({ ...place(lines, pos[0]), message });
    const duplicates = document.errors.filter(isKept).map((one): YamlError => {
      const [key = ''] = keyPattern.exec(text.slice(one.pos[0])) ?? [];
      return { ...place(lines, one.pos[0]), message: `${key} stands twice` };
    });
    const errors = document.errors.filter((one) => !isKept(one)).map(errorOf);
    const { value, error } = errors.length > 0 ? { value: undefined, error: undefined } : toPlain(document, lines);
    return {
      value,
      errors: error === undefined ? errors : [error],
      duplicates,
      locate: (path) => place(lines, offsetOf(document, path)),
    };
  });
}

/** Converts a document to plain data. Resolving aliases finds unknown and exploding ones. */
function toPlain(
  document: Document,
  lines: LineCounter,
): { readonly value: unknown; readonly error: YamlError | undefined } {
  const dangling = danglingAlias(document);
  if (dangling !== undefined) {
    const error = { ...place(lines, dangling.range?.[0] ?? 0), message: `no anchor is named ${dangling.source}` };
    return { value: undefined, error };
  }
  try {
    return { value: document.toJS({ maxAliasCount: 100 }), error: undefined };
  } catch (cause) {
    const message = messageOf(cause);
    return { value: undefined, error: { ...place(lines, document.range?.[0] ?? 0), message } };
  }
}

function danglingAlias(document: Document): Alias | undefined {
  let found: Alias | undefined;
  visit(document, {
    Alias(_, alias) {
      if (alias.resolve(document) !== undefined) return undefined;
      found = alias;
      return visit.BREAK;
    },
  });
  return found;
}

function place(lines: LineCounter, offset: number): { readonly line: number; readonly column: number } {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(1, line), column: Math.max(1, col) };
}

function offsetOf(document: Document, path: readonly (string | number)[]): number {
  let node: unknown = document.contents;
  let offset = startOf(node) ?? document.range?.[0] ?? 0;
  for (const step of path) {
    const next = childOf(node, step);
    if (next === undefined) return offset;
    node = next.value;
    offset = next.offset ?? startOf(node) ?? offset;
  }
  return offset;
}

/** Returns a child and the place of its name: the key of a pair, or the value of a list item. */
function childOf(
  node: unknown,
  step: string | number,
): { readonly value: unknown; readonly offset: number | undefined } | undefined {
  if (isSeq(node)) {
    const value = node.items[Number(step)];
    return value === undefined ? undefined : { value, offset: startOf(value) };
  }
  if (!isMap(node)) return undefined;
  const pair = node.items.find((item) => isPair(item) && isScalar(item.key) && String(item.key.value) === String(step));
  return pair === undefined ? undefined : { value: pair.value, offset: startOf(pair.key) };
}

function startOf(node: unknown): number | undefined {
  return (node as Node | null | undefined)?.range?.[0];
}
