import type { Millis } from '@switchyard/core';

/** A value that changes at some moments. Times in milliseconds. */
export interface Steps<T> {
  readonly initial: T;
  /** Changes in order of time. A change holds from its moment on. */
  readonly changes: readonly Step<T>[];
}

/** One change. */
export interface Step<T> {
  readonly at: number;
  readonly value: T;
}

/** Reads values at times that never go back. */
export function stepReader<T>({ initial, changes }: Steps<T>): (at: number) => T {
  let value = initial;
  let next = 0;
  return (at) => {
    for (let change = changes[next]; change !== undefined && change.at <= at; change = changes[next]) {
      value = change.value;
      next += 1;
    }
    return value;
  };
}

/** Values computed at some moments; changes to an equal value are left out. `initial` holds before all of them. */
export function stepsAt<T>(initial: T, times: readonly number[], valueAt: (at: number) => T): Steps<T> {
  const changes: Step<T>[] = [];
  let last = initial;
  for (const at of times) {
    const value = valueAt(at);
    if (Object.is(value, last)) continue;
    changes.push({ at, value });
    last = value;
  }
  return { initial, changes };
}

/** Finite times in order, each once. */
export function inOrder(times: readonly number[]): readonly number[] {
  return [...new Set(times)].filter((time) => Number.isFinite(time)).toSorted((a, b) => a - b);
}

/** The earlier one of two times. */
export function earlier(a: Millis, b: Millis): Millis {
  return a < b ? a : b;
}

/** The later one of two times. */
export function later(a: Millis, b: Millis): Millis {
  return a > b ? a : b;
}
