import type { RunRecord, RunSettings } from '../run-record.ts';
import type { RunSummary } from '../run-summary.ts';
import { causeText, resultRows } from './result-table.ts';
import { styleSheet } from './style-sheet.ts';
import { escapeHtml } from './svg.ts';
import { timelineSvg } from './timeline-svg.ts';

/** One run with its summary. */
export interface ReportedRun {
  readonly run: RunRecord;
  readonly summary: RunSummary;
}

/** The whole report as one self-contained page: no script, no request to anywhere. */
export function reportHtml(runs: readonly ReportedRun[]): string {
  const settings = runs[0]?.run.settings;
  const facts = settings === undefined ? '' : factsOf(settings);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Switchyard: a rolling update, with and without the terminating fallback</title>
<style>${styleSheet}</style>
</head>
<body>
<main>
<h1>A rolling update, with and without the terminating fallback</h1>
<p>A Service of type LoadBalancer with <code>externalTrafficPolicy: Local</code>, one replica, two nodes, a real HAProxy in front. ${escapeHtml(facts)}</p>
${resultTable(runs)}
${legend}
${runs.map(section).join('\n')}
</main>
</body>
</html>
`;
}

/** The run's settings in one sentence. */
function factsOf(settings: RunSettings): string {
  const { profile, interval, fall } = settings.healthCheck;
  const place = settings.runtime === 'docker' ? ' in a container' : '';
  const drain = settings.fastDrain ? ', and as soon as an EndpointSlice says so (fast drain)' : '';
  const scale = settings.timeScale === 1 ? '' : `; all durations scaled by ${settings.timeScale}`;
  return (
    `HAProxy${place} checks every ${interval / 1000} s, ${fall} failures take a node out${drain} (profile ${profile}); ` +
    `the app serves ${settings.delayShutdown / 1000} s after SIGTERM; ${settings.rate} requests/s in an open loop, ` +
    `${settings.requestTimeout} ms each; agents in the ${settings.proxyMode} mode${scale}.`
  );
}

function resultTable(runs: readonly ReportedRun[]): string {
  const rows = resultRows(runs.map((run) => run.summary));
  const head = rows[0]?.map((cell) => `<th scope="col">${escapeHtml(cell)}</th>`).join('') ?? '';
  const body = rows
    .slice(1)
    .map(
      (row) =>
        `<tr>${row.map((cell, index) => (index === 0 ? `<th scope="row">${escapeHtml(cell)}</th>` : `<td>${escapeHtml(cell)}</td>`)).join('')}</tr>`,
    )
    .join('\n');
  return `<div class="results"><table><thead><tr>${head}</tr></thead><tbody>\n${body}\n</tbody></table></div>`;
}

const legend = `<p class="legend"><span class="key good"></span>ready, UP, 200
<span class="key warn"></span>terminating, still serves <span class="key bad"></span>down, 503, ended
<span class="key sync-key"></span>the agent applied a change <span class="key loss-key"></span>requests are being lost.
Point at a mark for its exact time.</p>`;

function section({ run, summary }: ReportedRun): string {
  const title = `Terminating fallback ${summary.terminatingFallback ? 'on' : 'off'}`;
  const verdict =
    summary.lost === 0
      ? `All ${summary.requests} requests were answered.`
      : `${summary.lost} of ${summary.requests} requests were lost; the loss model predicts ${summary.predictedLost}.`;
  return `<section>
<h2>${title}: <span class="${summary.lost === 0 ? 'ok' : 'fail'}">${summary.lost} lost</span></h2>
<p>${escapeHtml(verdict)}</p>
<div class="picture">${timelineSvg(run, summary)}</div>
${firstLoss(summary)}
</section>`;
}

function firstLoss(summary: RunSummary): string {
  const loss = summary.firstLoss;
  if (loss === undefined) return '';
  const steps = loss.explanation.map((step) => `<li>${escapeHtml(step)}</li>`).join('');
  const causes = Object.entries(summary.lostByCause)
    .map(([cause, count]) => `<li>${escapeHtml(causeText(cause))}: ${count}</li>`)
    .join('');
  return `<div class="why"><div><h3>Lost by cause</h3><ul>${causes}</ul></div>
<div><h3>Why the first one was lost (request ${loss.sequence}, ${loss.at.toFixed(2)} s, ${escapeHtml(loss.outcome)})</h3><ol>${steps}</ol></div></div>`;
}
