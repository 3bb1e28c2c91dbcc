import { HostError } from '@switchyard/core';

/** A line of `kubectl get --watch --output-watch-events --output=json`. */
export interface WatchEvent<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: T;
}

/** Parses a line. Undefined: an event without a change, such as a bookmark. Throws `HostError` if the API server ended the watch. */
export function parseWatchEvent<T>(line: string): WatchEvent<T> | undefined {
  const { type, object } = JSON.parse(line) as { readonly type: string; readonly object: unknown };
  if (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED') return { type, object: object as T }; // the resource that was requested
  if (type !== 'ERROR') return undefined;
  const { message = 'no reason given' } = object as { readonly message?: string };
  throw new HostError('watch.ended', `the API server ended the watch: ${message}; begin again`);
}
