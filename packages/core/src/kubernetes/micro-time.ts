import type { Millis } from '../base/time.ts';

/** The API's MicroTime: six digits, whatever the clock knows. */
export function microTime(time: Millis): string {
  const text = new Date(time).toISOString();
  return `${text.slice(0, -1)}000Z`;
}
