import { brokenOff, failureFrom, type ApiFailure } from './api-failure.ts';

/** One line of a watch. */
export type WatchEvent =
  | { readonly kind: 'changed'; readonly object: RawObject }
  | { readonly kind: 'deleted'; readonly object: RawObject }
  /** Carries a version only; its object is an empty shell. */
  | { readonly kind: 'bookmark'; readonly resourceVersion: string; readonly isInitialEventsEnd: boolean }
  | { readonly kind: 'error'; readonly error: ApiFailure };

/** An API object of any kind, as parsed. */
export interface RawObject {
  readonly metadata?: {
    readonly name?: string;
    readonly namespace?: string;
    readonly resourceVersion?: string;
    readonly annotations?: Readonly<Record<string, string>> | null;
  };
}

/** Objects are limited to about 1.5 MiB by etcd; a longer line is not a watch. */
const maxLineBytes = 32 * 1024 * 1024;
const newline = 10;

/**
 * Joins chunks and cuts them at newlines (byte 10), not at chunk borders: one chunk may hold many lines
 * or half of one. Yields the complete lines of each chunk together, without their newlines; they are
 * views, valid until the next step. Throws `ApiFailure` when the last line has no newline.
 */
export async function* splitLines(chunks: AsyncIterable<Buffer>, request: string): AsyncGenerator<readonly Buffer[]> {
  let parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    let start = 0;
    const lines: Buffer[] = [];
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      const tail = chunk.subarray(start, end);
      const line = parts.length === 0 ? tail : Buffer.concat([...parts, tail]);
      if (line.length > 0) lines.push(line);
      parts = [];
      length = 0;
      start = end + 1;
    }
    if (start < chunk.length) {
      parts.push(chunk.subarray(start));
      length += chunk.length - start;
      if (length > maxLineBytes) throw brokenOff(request, `a line is longer than ${maxLineBytes} bytes`);
    }
    if (lines.length > 0) yield lines;
  }
  if (length > 0) throw brokenOff(request, 'the last line is not complete');
}

/** Reads one line of a watch. Throws `ApiFailure` for anything that is not a watch event. */
export function parseWatchLine(line: Buffer, request: string): WatchEvent {
  const { type, object } = parseLine(line, request);
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
      return { kind: 'changed', object };
    case 'DELETED':
      return { kind: 'deleted', object };
    case 'BOOKMARK':
      return {
        kind: 'bookmark',
        resourceVersion: object.metadata?.resourceVersion ?? '',
        isInitialEventsEnd: object.metadata?.annotations?.['k8s.io/initial-events-end'] === 'true',
      };
    case 'ERROR':
      return { kind: 'error', error: errorEvent(object, request) };
    default:
      throw brokenOff(request, `a watch event has the unknown type ${JSON.stringify(type)}`);
  }
}

interface Line {
  readonly type?: unknown;
  readonly object: RawObject;
}

function parseLine(line: Buffer, request: string): Line {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line.toString('utf8'));
  } catch (error) {
    throw brokenOff(request, 'a watch event is not JSON', error);
  }
  const isLine = (value: unknown): value is Line =>
    typeof value === 'object' && value !== null && 'object' in value && typeof value.object === 'object';
  if (!isLine(parsed) || parsed.object === null) throw brokenOff(request, 'a watch event has no object');
  return parsed;
}

/** The object of an ERROR event is a `Status`; its code stands where an HTTP status would. */
function errorEvent(status: object, request: string): ApiFailure {
  const code = 'code' in status && typeof status.code === 'number' ? status.code : 500;
  return failureFrom({ request, status: code, retryAfter: undefined, body: JSON.stringify(status) });
}
