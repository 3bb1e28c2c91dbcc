import { readFileSync } from 'node:fs';
import { UsageError } from '../../base/errors.ts';
import type { Exchange } from '../../testing/scripted-api-server.ts';

/** One exchange of a recording. */
export interface Recorded {
  readonly name?: string;
  readonly request: { readonly method: string; readonly target: string };
  readonly response: {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: unknown;
    readonly bodyText?: string;
    readonly stream?: readonly { readonly atMs: number; readonly line: RecordedLine }[];
    readonly end?: string;
  };
}

/** One line of a recorded watch. */
export interface RecordedLine {
  readonly type: string;
  readonly object: { readonly metadata: { readonly name?: string; readonly resourceVersion: string } };
}

/** A file of `test/fixtures/apiserver-1.36`. */
export function recording<T>(file: string): T {
  const url = new URL(`../../../test/fixtures/apiserver-1.36/${file}`, import.meta.url);
  return JSON.parse(readFileSync(url, 'utf8')) as T; // our own files; a wrong shape fails the test
}

/** The only exchange of a file whose name contains `part`. */
export function recorded(file: string, part: string): Recorded {
  const all = recording<{ exchanges: readonly Recorded[] }>(file).exchanges;
  const found = all.filter(({ name = '' }) => name.includes(part));
  const [exchange] = found;
  if (exchange === undefined || found.length > 1) {
    throw new UsageError(
      'testing.recording',
      `${file} has ${found.length} exchanges named like ${JSON.stringify(part)}`,
    );
  }
  return exchange;
}

/** The lines of a recorded watch. */
export function linesOf({ response }: Recorded): readonly RecordedLine[] {
  return (response.stream ?? []).map(({ line }) => line);
}

/** Answers as recorded, without the pauses; a watch that the recording client left stays open. */
export function replay(exchange: Exchange, record: Recorded): Exchange {
  const { body, bodyText, end, headers, status } = record.response;
  if (end === undefined) {
    const { 'Retry-After': retryAfter } = headers;
    exchange.answer(status, bodyText ?? body, retryAfter === undefined ? {} : { 'retry-after': retryAfter });
    return exchange;
  }
  exchange.stream();
  if (linesOf(record).length > 0) exchange.send(...linesOf(record));
  if (end === 'chunked terminator') exchange.end();
  if (end === 'connection closed without terminator') exchange.cut();
  return exchange;
}
