import { escapeHtml } from '@switchyard/host';
import { timelineSvg, causeText } from './timeline-svg.ts';
import { packetLossTexts } from './packet-losses.ts';
import type { RunRecord, RunSettings, RunSummary } from '../run-record.ts';

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
${firstLoss(run, summary)}
</section>`;
}

function firstLoss(run: RunRecord, summary: RunSummary): string {
  const loss = summary.firstLoss;
  if (loss === undefined) return '';
  const steps = loss.explanation.map((step) => `<li>${escapeHtml(step)}</li>`).join('');
  const causes = Object.entries(summary.lostByCause)
    .map(([cause, count]) => `<li>${escapeHtml(causeText(cause))}: ${count}</li>`)
    .join('');
  const packets = packetLossTexts(run, summary)
    .map((line) => `<li>${escapeHtml(line)}</li>`)
    .join('');
  const dropped = packets === '' ? '' : `<div><h3>Packets that were dropped</h3><ul>${packets}</ul></div>\n`;
  return `<div class="why"><div><h3>Lost by cause</h3><ul>${causes}</ul></div>
${dropped}<div><h3>Why the first one was lost (request ${loss.sequence}, ${loss.at.toFixed(2)} s, ${escapeHtml(loss.outcome)})</h3><ol>${steps}</ol></div></div>`;
}

const light = `--ink: #1d2430; --soft: #5d6878; --line: #d8dde5; --good: #2f7fb8; --warn: #e0a11b; --bad: #c8452e; --muted: #b6bfca;
  --loss: #c8452e; --new: #1b9e77; --on-warn: #2b2000;`;
const dark = `--ink: #e6eaf0; --soft: #9aa6b5; --line: #2c343f; --good: #4a9fd8; --warn: #e8b23c; --bad: #e8644c; --muted: #566170;
  --loss: #e8644c; --new: #35c091;`;

/** Styles of timelines, which affect nothing else on a page. The colours are distinct for people with common colour blindnesses. */
export const timelineStyle: string = `
.rollout-timeline { ${light} }
@media (prefers-color-scheme: dark) { .rollout-timeline { ${dark} } }
.rollout-timeline text { font: 12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: var(--ink); }
.rollout-timeline .label, .rollout-timeline .lane { text-anchor: end; } .rollout-timeline .lane { fill: var(--soft); } .rollout-timeline .tick { text-anchor: middle; fill: var(--soft); }
.rollout-timeline .grid, .rollout-timeline .rule { stroke: var(--line); } .rollout-timeline .zero { stroke: var(--ink); stroke-dasharray: 3 3; }
.rollout-timeline .zero-label { fill: var(--soft); } .rollout-timeline .loss { fill: var(--loss); opacity: .13; } .rollout-timeline .loss-label { fill: var(--loss); font-weight: 600; }
.rollout-timeline .bar.good { fill: var(--good); } .rollout-timeline .bar.warn { fill: var(--warn); } .rollout-timeline .bar.bad { fill: var(--bad); } .rollout-timeline .bar.muted { fill: var(--muted); }
.rollout-timeline .in { fill: #fff; } .rollout-timeline .in.warn { fill: var(--on-warn, #2b2000); } .rollout-timeline .in.muted { fill: #1d2430; } .rollout-timeline .sync { fill: var(--ink); }
.rollout-timeline .request.old { fill: var(--good); } .rollout-timeline .request.new { fill: var(--new); } .rollout-timeline .request.lost { fill: var(--loss); }
`;

/** The page's own styles: one sheet for light and dark, colours that survive the common colour blindnesses. */
export const styleSheet: string = `${timelineStyle}
:root { color-scheme: light dark; --paper: #fff; --panel: #f6f8fa; ${light} }
@media (prefers-color-scheme: dark) { :root { --paper: #12161c; --panel: #1a2029; ${dark} } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 24px 24px 48px; }
h1 { font-size: 24px; margin: 0 0 8px; } h2 { font-size: 19px; margin: 30px 0 4px; } h3 { font-size: 15px; margin: 8px 0 4px; }
p { margin: 4px 0 12px; } code { font-size: 14px; }
h1, p { overflow-wrap: break-word; } .results { overflow-x: auto; }
table { border-collapse: collapse; margin: 12px 0; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 6px 14px 6px 0; border-bottom: 1px solid var(--line); } thead th { color: var(--soft); font-weight: 600; }
.ok { color: var(--new); } .fail { color: var(--bad); }
.picture { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 10px; overflow-x: auto; }
.picture svg { display: block; width: 100%; min-width: 900px; height: auto; }
.legend { color: var(--soft); font-size: 13px; } .key { display: inline-block; width: 14px; height: 10px; border-radius: 2px; margin: 0 5px 0 10px; }
.key.good { background: var(--good); } .key.warn { background: var(--warn); } .key.bad { background: var(--bad); }
.key.sync-key { background: var(--ink); width: 9px; height: 9px; transform: rotate(45deg); } .key.loss-key { background: var(--loss); opacity: .25; }
.why { display: flex; flex-wrap: wrap; gap: 8px 48px; } .why > div { min-width: 0; } .why ul, .why ol { margin: 0; padding-left: 20px; }
`;

/** Header and one row per run: what the terminal and the page both show. */
export function resultRows(summaries: readonly RunSummary[]): readonly (readonly string[])[] {
  const head = ['terminating fallback', 'requests', 'answered', 'lost', 'loss window', 'model predicts', 'first loss'];
  return [
    head,
    ...summaries.map((summary) => [
      summary.terminatingFallback ? 'on (Kubernetes >= 1.26)' : 'off (Kubernetes <= 1.25)',
      String(summary.requests),
      String(summary.answered),
      String(summary.lost),
      summary.lossWindow === undefined
        ? '-'
        : `${summary.lossWindowSeconds.toFixed(1)} s (+${summary.lossWindow.from.toFixed(2)}..+${summary.lossWindow.to.toFixed(2)})`,
      String(summary.predictedLost),
      summary.firstLoss === undefined ? '-' : causeText(summary.firstLoss.cause),
    ]),
  ];
}

export function textTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('   ')
      .trimEnd();
  const rule = widths.map((columnWidth) => '-'.repeat(columnWidth)).join('   ');
  return rows.map((row, index) => (index === 0 ? `${line(row)}\n${rule}` : line(row))).join('\n');
}
