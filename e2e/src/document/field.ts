import { ConfigError } from '@switchyard/core';
import { type Document, isNode, LineCounter, parseDocument } from 'yaml';

/** A value inside a file, with its place. */
export interface Field {
  readonly value: unknown;
  /** `e2e/matrix.json:12:5: exclude[0].reason`. */
  readonly place: string;
  /** The field one step further in; one that is not there has the value undefined and the place of this one. */
  at(key: string | number): Field;
}

/** Reads a file's text, YAML or JSON, which is a kind of YAML. Throws `ConfigError` with line and column when it is neither. */
export function parseFields(file: string, text: string): Field {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: true });
  const [fault] = document.errors;
  if (fault !== undefined) {
    const { line, col } = lines.linePos(fault.pos[0]);
    throw new ConfigError('e2e.syntax', `${file}:${line}:${col}: ${fault.message.split('\n')[0]}`);
  }
  return fieldAt({ file, document, lines }, []);
}

interface Source {
  readonly file: string;
  readonly document: Document;
  readonly lines: LineCounter;
}

type Path = readonly (string | number)[];

function fieldAt(source: Source, path: Path): Field {
  const node = path.length === 0 ? source.document.contents : source.document.getIn(path, true);
  return {
    value: isNode(node) ? node.toJS(source.document) : node,
    place: placeOf(source, path),
    at: (key) => fieldAt(source, [...path, key]),
  };
}

/** Line and column of the nearest value that is there. */
function placeOf(source: Source, path: Path): string {
  const { file, document, lines } = source;
  for (let length = path.length; length >= 0; length--) {
    const node = length === 0 ? document.contents : document.getIn(path.slice(0, length), true);
    const start = isNode(node) ? node.range?.[0] : undefined;
    if (start === undefined) continue;
    const { line, col } = lines.linePos(start);
    return `${file}:${line}:${col}: ${pathText(path)}`;
  }
  return `${file}: ${pathText(path)}`;
}

function pathText(path: Path): string {
  const text = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`)).join('');
  return text === '' ? 'the file' : text.replace(/^\./, '');
}
