import { amountText } from './amount-text.ts';
import type { CheckDifference, OneSided, RunDiff, Side, SideObservation } from './diff.ts';
import { diffLine, noSuchCheck, observedText, other, sideNames } from './diff-text.ts';
import { pageFrame } from './html/page-frame.ts';
import { styleSheet } from './html/style-sheet.ts';
import { escapeMarkup } from './markup.ts';

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

type Names = Readonly<Record<Side, string>>;

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
