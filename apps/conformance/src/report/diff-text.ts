import { amountText } from './amount-text.ts';
import type { CheckDifference, OneSided, RunDiff, Side, SideObservation } from './diff.ts';
import type { DiffSide } from './diff-side.ts';
import { type Painter, painter } from './painter.ts';
import { plainText } from './plain-text.ts';

/** Text for a side without such a check. */
export const noSuchCheck = 'not looked at';

/** Names of both sides for heads of columns: proxies where they differ, else with cells, else with files. */
export function sideNames({ a, b }: Pick<RunDiff, 'a' | 'b'>): Readonly<Record<Side, string>> {
  const candidates: readonly ((side: DiffSide) => string)[] = [
    ({ column }) => column.proxy,
    ({ column }) => column.key,
    ({ file, column }) => `${file}#${column.key}`,
  ];
  const naming = candidates.find((name) => name(a) !== name(b)) ?? (({ file }: DiffSide) => file);
  return { a: naming(a), b: naming(b) };
}

/** Observation of a side as one cell; texts that vary between rounds are joined. */
export function observedText({ observed }: SideObservation): string {
  return observed.length === 0 ? noSuchCheck : observed.join(' | ');
}

/** `1,204 checks of 310 cases are equal, 14 differ in 6 cases, 2 are unstable; 3 cases in one only`. */
export function diffLine(diff: RunDiff): string {
  const { equalChecks, sharedCases, differences, unstable, oneSided } = diff;
  const cases = new Set(differences.map(({ caseId }) => caseId)).size;
  const parts = [
    `${equalChecks.toLocaleString('en')} checks of ${sharedCases.toLocaleString('en')} cases are equal`,
    `${differences.length} differ${differences.length === 0 ? '' : ` in ${amountText(cases, 'case')}`}`,
    ...(unstable.length === 0 ? [] : [`${unstable.length} unstable`]),
    ...(oneSided.length === 0 ? [] : [`${amountText(oneSided.length, 'case')} in one only`]),
  ];
  return parts.join(', ');
}

/** The differences as a matrix for a terminal: rows are checks, by case; columns are both sides. */
export function diffText(diff: RunDiff, { colours }: { readonly colours: boolean }): string {
  const paint = painter(colours);
  const names = sideNames(diff);
  const parts = [
    matrix('observed differently', diff.differences, names, paint),
    matrix('unstable: varies between rounds of the same proxy', diff.unstable, names, paint),
    oneSidedPart(diff.oneSided, names, paint),
    diffLine(diff) + legend(diff),
  ];
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}

function legend({ differences, unstable }: RunDiff): string {
  const isMarked = [...differences, ...unstable].some(({ a, b }) => !a.isAsExpected || !b.isAsExpected);
  return isMarked ? "\n(! is not as expected of this proxy's mode)" : '';
}

function matrix(
  title: string,
  checks: readonly CheckDifference[],
  names: Readonly<Record<Side, string>>,
  paint: Painter,
): string {
  if (checks.length === 0) return '';
  const cells = checks.map((check) => ({ check, a: cellText(check.a), b: cellText(check.b) }));
  const head = plainText(title);
  const widthOf = (texts: readonly string[]): number => Math.max(...texts.map((text) => text.length));
  const whatWidth = widthOf([head, ...cells.map(({ check }) => `    ${plainText(check.what)}`)]);
  const aWidth = widthOf([plainText(names.a), ...cells.map(({ a }) => a)]);
  const lines = [...Map.groupBy(cells, ({ check }) => check.caseId)].flatMap(([caseId, rows]) => [
    `  ${plainText(caseId)}`,
    ...rows.map(({ check, a, b }) => {
      const what = `    ${plainText(check.what)}`.padEnd(whatWidth);
      return `${what}  ${painted(check.a, a, paint)}${' '.repeat(aWidth - a.length)}  ${painted(check.b, b, paint)}`;
    }),
  ]);
  const heads = `${head.padEnd(whatWidth)}  ${plainText(names.a).padEnd(aWidth)}  ${plainText(names.b)}`;
  return [paint.strong(heads), ...lines].join('\n');
}

/** Adds a mark if the observation is not as expected, for output without colours. */
function cellText(side: SideObservation): string {
  return `${plainText(observedText(side))}${side.observed.length > 0 && !side.isAsExpected ? ' !' : ''}`;
}

function painted({ observed, isAsExpected }: SideObservation, text: string, paint: Painter): string {
  if (observed.length === 0) return paint.soft(text);
  return isAsExpected ? text : paint.bad(text);
}

function oneSidedPart(all: readonly OneSided[], names: Readonly<Record<Side, string>>, paint: Painter): string {
  const groups = Map.groupBy(all, (one) => `only ${names[one.in]} ran these (${names[other(one.in)]}: ${one.because})`);
  return [...groups]
    .flatMap(([head, group]) => [paint.strong(plainText(head)), ...group.map(({ caseId }) => `  ${plainText(caseId)}`)])
    .join('\n');
}

/** The other side. */
export function other(side: Side): Side {
  return side === 'a' ? 'b' : 'a';
}
