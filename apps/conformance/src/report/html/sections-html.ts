import { amountText } from '../amount-text.ts';
import type { ReportFile, RolloutTimeline } from '../../model/report-file.ts';
import type { Column } from '../columns.ts';
import { countsOf, timeCovered } from '../counts.ts';
import { durationText } from '../duration-text.ts';
import { flakeLine, flakesOf } from '../flakes.ts';
import { escapeMarkup } from '../markup.ts';
import { rolloutLine } from '../rollout-text.ts';
import { skipGroups } from '../skips.ts';
import { rolloutSvg } from './rollout-svg.ts';

/** One card per proxy with its counts. A click shows only this proxy. */
export function cardsHtml(columns: readonly Column[]): string {
  return `<div class="cards">${columns.map(cardHtml).join('\n')}</div>`;
}

function cardHtml({ key, proxy, place, runs, rounds }: Column): string {
  const counts = countsOf(runs);
  const { passed, failed, skipped, error } = counts;
  const verdict =
    error > 0
      ? `<span class="verdict is-error">${amountText(error, 'lab error')}${failed > 0 ? `, ${failed} failed` : ''}</span>`
      : failed > 0
        ? `<span class="verdict is-failed">${failed} failed</span>`
        : `<span class="verdict is-passed">all passed</span>`;
  const shares = (['passed', 'failed', 'error', 'skipped'] as const)
    .filter((status) => counts[status] > 0)
    .map((status) => `<i class="s-${status}" style="flex-grow:${counts[status]}"></i>`);
  const times = rounds > 1 ? `, ${rounds} rounds` : '';
  return `<button type="button" class="card" data-choose="${escapeMarkup(key)}"><b>${escapeMarkup(proxy)} <small>${escapeMarkup(place)}</small></b>
${verdict}<span class="share" aria-hidden="true">${shares.join('')}</span>
<small>${passed} passed${skipped > 0 ? `, ${skipped} skipped` : ''}${times}, ${durationText(timeCovered(runs)).replaceAll(' ', '&nbsp;')}</small></button>`;
}

/** Start, target, kernel, seed and version of the runs, in one line. */
export function factsHtml({ runs, version }: ReportFile): string {
  const unique = (values: readonly string[]): string => [...new Set(values)].join(', ');
  const started = runs.map(({ startedAt }) => startedAt).sort()[0] ?? '';
  const facts = [
    started.replace('T', ' ').replace(/:\d\d(?:\.\d+)?Z$/, ' UTC'),
    `target ${unique(runs.map(({ target }) => target))}`,
    `kernel ${unique(runs.map(({ kernel }) => kernel))}`,
    `seed ${unique(runs.map(({ seed }) => String(seed)))}`,
    `version ${version}`,
  ];
  const commands = [
    ...new Set(runs.flatMap(({ proxy }) => (proxy.command === undefined ? [] : [`${proxy.name}: ${proxy.command}`]))),
  ];
  const told = commands.map((command) => `<br><code>${escapeMarkup(command)}</code>`).join('');
  return `<p class="soft">${escapeMarkup(facts.join(' · '))}${told}</p>`;
}

/** Skips by reason. */
export function skipsHtml(report: ReportFile): string {
  const groups = skipGroups(report);
  if (groups.length === 0) return '';
  const rows = groups.map(
    ({ reason, count, ids }) =>
      `<tr><td class="number">${count}</td><td>${escapeMarkup(reason)}<details><summary class="soft">${ids.length} ${ids.length === 1 ? 'case' : 'cases'}</summary>${ids.map(escapeMarkup).join('<br>')}</details></td></tr>`,
  );
  return `<section aria-labelledby="skips"><h2 id="skips">Skipped</h2><table class="plain"><thead><tr><th scope="col">skips</th><th scope="col">reason</th></tr></thead>
<tbody>${rows.join('\n')}</tbody></table></section>`;
}

/** Cases whose verdict differs between rounds. */
export function flakesHtml(report: ReportFile): string {
  const flakes = flakesOf(report);
  if (flakes.rounds < 2) return '';
  const rows = flakes.cases.map(({ id, column, verdicts }) => {
    const told = [...Map.groupBy(verdicts, ({ verdict }) => verdict)].map(
      ([verdict, rounds]) => `${escapeMarkup(verdict)} in round ${rounds.map(({ round }) => round).join(', ')}`,
    );
    return `<tr><td>${escapeMarkup(id)}</td><td>${escapeMarkup(column)}</td><td>${told.join('<br>')}</td></tr>`;
  });
  const table =
    rows.length === 0
      ? ''
      : `<table class="plain"><thead><tr><th scope="col">case</th><th scope="col">proxy</th><th scope="col">verdicts</th></tr></thead><tbody>${rows.join('\n')}</tbody></table>`;
  return `<section aria-labelledby="flakes"><h2 id="flakes">Rounds</h2><p>${escapeMarkup(flakeLine(flakes))}</p>${table}</section>`;
}

/** All rolling updates, drawn; those that lost something first, the others folded. */
export function rolloutsHtml(columns: readonly Column[]): string {
  const all = columns.flatMap((column) =>
    column.runs.flatMap(({ round, cases }) =>
      cases.flatMap(({ id, rollouts }) => rollouts.map((timeline) => ({ column, round, id, timeline }))),
    ),
  );
  const lossy = all.filter(({ timeline }) => timeline.lost > 0);
  const figures = [...lossy, ...all.filter(({ timeline }) => timeline.lost === 0)].map(rolloutHtml);
  if (figures.length === 0) return '';
  return `<section aria-labelledby="rollouts"><h2 id="rollouts">Rolling updates</h2>${figures.join('\n')}</section>`;
}

interface DrawnRollout {
  readonly column: Column;
  readonly round: number;
  readonly id: string;
  readonly timeline: RolloutTimeline;
}

function rolloutHtml({ column, round, id, timeline }: DrawnRollout): string {
  const isGood = timeline.lost === 0;
  const where = `${id}, ${column.proxy} ${column.place}${column.rounds > 1 ? `, round ${round}` : ''}`;
  const verdict = `<span class="${isGood ? 'ok' : 'fail'}">${escapeMarkup(rolloutLine(timeline))}</span>`;
  const caption = `<strong>${escapeMarkup(timeline.title)}</strong> <span class="soft">${escapeMarkup(where)}</span> ${verdict}`;
  return `<figure data-rollout="${escapeMarkup(`${column.key} ${id}`)}"><details class="rollout"${isGood ? '' : ' open'}><summary><figcaption>${caption}</figcaption></summary>
<div class="picture">${rolloutSvg(timeline)}</div></details></figure>`;
}
