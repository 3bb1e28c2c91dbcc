/** A line of `logs --timestamps`. */
export interface StampedLine {
  /** As the engine writes it: RFC 3339 with nanoseconds. Orders the lines of one container. */
  readonly stamp: string;
  /** The same in milliseconds since the Unix epoch, with a fraction. */
  readonly time: number;
  readonly text: string;
}

/** Splits a line of `logs --timestamps`; undefined for one without a stamp. */
export function parseStampedLine(line: string): StampedLine | undefined {
  const match =
    /^(?<second>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?<fraction>\.\d+)?(?<zone>Z|[+-]\d\d:\d\d) (?<text>.*)$/.exec(line);
  const { second = '', fraction = '.0', zone = '', text = '' } = match?.groups ?? {};
  const whole = Date.parse(`${second}${zone}`);
  if (match === null || Number.isNaN(whole)) return undefined;
  return { stamp: line.slice(0, line.indexOf(' ')), time: whole + Number(`0${fraction}`) * 1000, text };
}
