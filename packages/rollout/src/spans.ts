import { isDeepStrictEqual } from 'node:util';
import type { Millis } from '@switchyard/core';

/** A value that held from `from` until `to`. */
export interface Span<V> {
  readonly from: Millis;
  readonly to: Millis;
  readonly value: V;
}

/**
 * Turns moments ("from here on the value is V") into spans inside a window. Equal neighbours are joined; what was
 * true when the window opened starts at its edge.
 */
export function spansOf<V>(
  moments: readonly { readonly at: Millis; readonly value: V }[],
  window: { readonly from: Millis; readonly to: Millis },
): readonly Span<V>[] {
  const sorted = [...moments].sort((a, b) => a.at - b.at);
  const spans: Span<V>[] = [];
  for (const [index, moment] of sorted.entries()) {
    const from = Math.max(moment.at, window.from) as Millis;
    const to = Math.min(sorted[index + 1]?.at ?? window.to, window.to) as Millis;
    if (to <= from) continue;
    const last = spans.at(-1);
    if (last !== undefined && isDeepStrictEqual(last.value, moment.value) && last.to === from)
      spans[spans.length - 1] = { ...last, to };
    else spans.push({ from, to, value: moment.value });
  }
  return spans;
}
