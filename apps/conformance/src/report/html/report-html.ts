import type { ReportFile } from '../../model/report-file.ts';
import { countsLine } from '../counts.ts';
import { failuresOf } from '../failures.ts';
import { escapeMarkup } from '../markup.ts';
import { matrixOf } from '../matrix.ts';
import { pageData } from '../page-data.ts';
import { pageScript } from '../page-script.generated.ts';
import { policyGrids } from '../policy-grid.ts';
import { casesHtml, filterHtml } from './cases-html.ts';
import { failuresHtml } from './failures-html.ts';
import { gridsHtml } from './grids-html.ts';
import { pageFrame } from './page-frame.ts';
import { cardsHtml, factsHtml, flakesHtml, rolloutsHtml, skipsHtml } from './sections-html.ts';
import { styleSheet } from './style-sheet.ts';

/**
 * The whole report as one self-contained page, light and dark, for screen and print: cards per proxy, the matrix of cases by proxy
 * with a filter, policies as grids, each failure with the packet's path, rolling updates drawn, skips by reason, flakes. Works from
 * `file://` and fetches nothing. `#case=ID&proxy=KEY` shows the details of a case.
 */
export function reportHtml(report: ReportFile): string {
  const matrix = matrixOf(report);
  const body = `<main>
<h1>Service proxy conformance</h1>
${factsHtml(report)}
<p>${escapeMarkup(countsLine(report))}</p>
${cardsHtml(matrix.columns)}
<section aria-labelledby="matrix"><h2 id="matrix">Cases</h2>
${filterHtml(matrix)}
${casesHtml(matrix)}</section>
${gridsHtml(policyGrids(matrix), matrix.columns)}
${failuresHtml(failuresOf(report))}
${rolloutsHtml(matrix.columns)}
${flakesHtml(report)}
${skipsHtml(report)}
</main>
<section id="detail" role="region" aria-label="Details of a case" hidden><button type="button" id="close">close (Esc)</button><div id="detail-body"></div></section>`;
  return pageFrame({
    title: `Conformance: ${matrix.columns.map(({ proxy }) => proxy).join(', ')}`,
    styles: styleSheet(matrix.columns.length),
    body,
    data: pageData(report),
    script: pageScript,
  });
}
