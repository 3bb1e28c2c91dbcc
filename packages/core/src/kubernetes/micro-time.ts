import type { Millis } from '../base/time.ts';

/** Returns a time as the API's MicroTime, with six decimal digits; the clock has three. */
export function microTime(time: Millis): string {
  const text = new Date(time).toISOString();
  return `${text.slice(0, -1)}000Z`;
}
