import type { Logger } from '../base/log.ts';
import type { SkippedPart } from './to-records.ts';

/** Enough to name every fault of a sane cluster once. */
const maxRemembered = 1000;

/**
 * Logs each part of an object that is left out once, not again with every relist; an empty path stands
 * for the whole object. When more faults were seen than are remembered, it starts over.
 */
export function newSkippedLog(log: Logger): (part: SkippedPart) => void {
  const seen = new Set<string>();
  return ({ resource, name, path, value }) => {
    const text = JSON.stringify(value);
    const key = `${resource} ${name} ${path} ${text}`;
    if (seen.has(key)) return;
    if (seen.size >= maxRemembered) seen.clear();
    seen.add(key);
    if (path === '') log.warn('object is not usable and left out', { resource, name, reason: value });
    else log.warn('part of an object is not usable and left out', { resource, name, path, value: text.slice(0, 200) });
  };
}
