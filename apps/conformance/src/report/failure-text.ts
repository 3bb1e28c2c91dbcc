import type { CaseResult, CheckResult, PacketPath } from '../model/report-file.ts';
import type { Painter } from './painter.ts';
import { indented, plainText } from './plain-text.ts';

/** Headings of a packet's path. */
export const pathTitles: Readonly<Record<PacketPath['run'], string>> = {
  table: "path by Switchyard's table",
  packets: 'path in the kernel',
};

/** One failed check with what was expected, seen, why, and the packet's path. */
export function checkText(check: CheckResult, paint: Painter): string {
  const lines = [
    `${paint.strong('check')} ${plainText(check.id)}: ${plainText(check.what)}`,
    `  expected  ${paint.good(plainText(check.expected))}`,
    `  observed  ${paint.bad(plainText(check.observed))}`,
    ...check.because.map((line, index) => `  ${index === 0 ? 'because' : '       '}   ${plainText(line)}`),
    ...check.path.flatMap(({ run, lines: stations }) => [
      `  ${pathTitles[run]}${stations.length === 0 ? ': nothing is known of it' : ''}`,
      ...stations.map((line) => indented(plainText(line), 4)),
    ]),
  ];
  return lines.join('\n');
}

/** A case that failed or could not be run: its title, why it is checked, each failed check. */
export function failureText(result: CaseResult, checks: readonly CheckResult[], paint: Painter): string {
  const lines = [plainText(result.title), paint.soft(`why: ${plainText(result.why)}`)];
  if (result.because !== undefined && result.because !== '') lines.push(paint.warn(plainText(result.because)));
  if (result.status === 'failed' && checks.length === 0) lines.push(paint.bad('it failed without a failed check'));
  return [...lines, ...checks.map((check) => checkText(check, paint))].join('\n');
}
