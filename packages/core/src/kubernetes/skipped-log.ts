import type { Logger } from '../base/log.ts';
import type { SkippedPart } from './to-records.ts';

/** Limit of remembered faults. */
const maxRemembered = 1000;

/**
 * Returns a function that logs each omitted part of an object once, not again with every relist. An empty path stands
 * for the whole object. At the limit of remembered faults it starts over.
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
