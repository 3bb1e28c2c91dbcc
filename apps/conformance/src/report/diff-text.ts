import type { CheckDifference, OneSided, RunDiff, Side, SideObservation, DiffSide } from './diff.ts';
import { pageFrame } from './html/report-html.ts';
import { styleSheet } from './html/style-sheet.ts';
import { escapeMarkup } from './markup.ts';
import { amountText, type Painter, painter, plainText } from './texts.ts';

export const noSuchCheck = 'not looked at';

type Names = Readonly<Record<Side, string>>;

/** Names of both sides for heads of columns: proxies where they differ, else with cells, else with files. */
export function sideNames({ a, b }: Pick<RunDiff, 'a' | 'b'>): Names {
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

function matrix(title: string, checks: readonly CheckDifference[], names: Names, paint: Painter): string {
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

function oneSidedPart(all: readonly OneSided[], names: Names, paint: Painter): string {
  const groups = Map.groupBy(all, (one) => `only ${names[one.in]} ran these (${names[other(one.in)]}: ${one.because})`);
  return [...groups]
    .flatMap(([head, group]) => [paint.strong(plainText(head)), ...group.map(({ caseId }) => `  ${plainText(caseId)}`)])
    .join('\n');
}

/** The other side. */
export function other(side: Side): Side {
  return side === 'a' ? 'b' : 'a';
}

/** A comparison for other programs; its schema has a version of its own. */
export function diffJson(diff: RunDiff): string {
  const { a, b, equalChecks, sharedCases, differences, unstable, oneSided } = diff;
  const written = {
    schema: 'switchyard-conformance-diff/1',
    a: sideJson(a),
    b: sideJson(b),
    equalChecks,
    sharedCases,
    differences,
    unstable,
    oneSided,
  };
  return `${JSON.stringify(written, undefined, 1)}\n`;
}

function sideJson({ file, column }: DiffSide): Record<string, unknown> {
  const [first] = column.runs;
  return {
    file,
    proxy: first?.proxy,
    cell: first?.cell,
    target: first?.target,
    kernel: first?.kernel,
    rounds: column.rounds,
  };
}

/** A comparison as one self-contained page without a script: the differences as a matrix, what is unstable, what only one side ran. */
export function diffHtml(diff: RunDiff): string {
  const names = sideNames(diff);
  const title = `${names.a} and ${names.b}`;
  const sides = ([diff.a, diff.b] as const).map(({ file, column }) => {
    const [first] = column.runs;
    const rounds = column.rounds > 1 ? `, ${column.rounds} rounds` : '';
    return `<li>${escapeMarkup(`${file}: ${column.key}, ${first?.target ?? ''}, kernel ${first?.kernel ?? ''}${rounds}`)}</li>`;
  });
  const body = `<main>
<h1>What differs between ${escapeMarkup(title)}</h1>
<ul class="soft">${sides.join('')}</ul>
<p>${escapeMarkup(diffLine(diff))}</p>
${kindsTable(diff.differences, names)}
${checksTable('Observed differently', diff.differences, names)}
${checksTable('Unstable: varies between rounds of the same proxy', diff.unstable, names)}
${oneSidedTable(diff.oneSided, names)}
</main>`;
  return pageFrame({ title: `Conformance: ${title}`, styles: styleSheet(0), body, data: undefined, script: '' });
}

/** Number of checks by the outcomes of both sides, as a matrix. */
function kindsTable(differences: readonly CheckDifference[], names: Names): string {
  if (differences.length === 0) return '';
  const pairs = Map.groupBy(differences, ({ a, b }) => JSON.stringify([kindOf(a), kindOf(b)]));
  const inA = [...new Set(differences.map(({ a }) => kindOf(a)))];
  const inB = [...new Set(differences.map(({ b }) => kindOf(b)))];
  const rows = inA.map((kindA) => {
    const counts = inB.map((kindB) => pairs.get(JSON.stringify([kindA, kindB]))?.length ?? 0);
    const cells = counts.map((count) => `<td class="number">${count === 0 ? '' : count}</td>`);
    return `<tr><th scope="row">${escapeMarkup(kindA)}</th>${cells.join('')}</tr>`;
  });
  const heads = inB.map((kind) => `<th scope="col">${escapeMarkup(kind)}</th>`).join('');
  return `<table class="plain kinds"><thead><tr><th scope="col">${escapeMarkup(names.a)} ↓ &nbsp; ${escapeMarkup(names.b)} →</th>${heads}</tr></thead><tbody>${rows.join('')}</tbody></table>`;
}

/** Kind of an observation, without addresses. Other texts vary too much for a matrix. */
function kindOf(side: SideObservation): string {
  const text = observedText(side);
  if (text.startsWith('forward ')) return `forward${text.endsWith(', masqueraded') ? ', masqueraded' : ''}`;
  return ['reject', 'drop', 'pass', noSuchCheck].includes(text) ? text : 'other';
}

function checksTable(title: string, checks: readonly CheckDifference[], names: Names): string {
  if (checks.length === 0) return '';
  const groups = [...Map.groupBy(checks, ({ caseId }) => caseId)].map(([caseId, some]) => {
    const alike = Map.groupBy(some, ({ a, b }) => JSON.stringify([a, b]));
    const rows = [...alike.values()].flatMap((group) => {
      const [head] = group;
      const what = group.map((check) => escapeMarkup(check.what)).join('<br>');
      return head === undefined ? [] : `<tr><td>${what}</td>${[head.a, head.b].map(observedCell).join('')}</tr>`;
    });
    const [first] = some;
    const told = `${escapeMarkup(caseId)} <small>${escapeMarkup(first?.title ?? '')} · ${escapeMarkup(first?.why ?? '')}</small>`;
    return `<tbody><tr><th scope="rowgroup" colspan="3">${told}</th></tr>\n${rows.join('\n')}</tbody>`;
  });
  return `<section><h2>${escapeMarkup(title)} <small>${checks.length}</small></h2><div class="wide"><table class="plain">
<thead><tr><th scope="col">check</th><th scope="col">${escapeMarkup(names.a)}</th><th scope="col">${escapeMarkup(names.b)}</th></tr></thead>
${groups.join('\n')}</table></div></section>`;
}

function observedCell(side: SideObservation): string {
  const text = escapeMarkup(observedText(side));
  if (side.observed.length === 0) return `<td class="soft">${text}</td>`;
  return side.isAsExpected
    ? `<td>${text}</td>`
    : `<td class="not-expected"><b aria-label="not as expected">✗</b> ${text}</td>`;
}

function oneSidedTable(all: readonly OneSided[], names: Names): string {
  if (all.length === 0) return '';
  const groups = Map.groupBy(all, (one) => JSON.stringify([one.in, one.because]));
  const rows = [...groups.values()].map((some) => {
    const side = some[0]?.in ?? 'a';
    const why = `${names[other(side)]}: ${some[0]?.because ?? ''}`;
    const ids = some.map(({ caseId }) => escapeMarkup(caseId)).join('<br>');
    const cases = `<details${some.length > 4 ? '' : ' open'}><summary>${amountText(some.length, 'case')}</summary>${ids}</details>`;
    return `<tr><td>${escapeMarkup(names[side])}</td><td>${escapeMarkup(why)}</td><td>${cases}</td></tr>`;
  });
  return `<section><h2>Only one of them ran these <small>${all.length}</small></h2><table class="plain">
<thead><tr><th scope="col">ran</th><th scope="col">the other</th><th scope="col">cases</th></tr></thead><tbody>${rows.join('\n')}</tbody></table></section>`;
}
