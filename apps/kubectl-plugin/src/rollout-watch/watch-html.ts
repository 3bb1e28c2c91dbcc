import type { RolloutRecording } from './recording.ts';
import { escapeHtml } from '@switchyard/host';
import { timelineSvg } from './timeline.ts';
import type { WatchReport } from './watch-report.ts';
import { watchText } from './watch-text.ts';

/** The report as one self-contained page: no script, no request to anywhere. */
export function watchHtml(report: WatchReport, recording: RolloutRecording): string {
  const title = escapeHtml(`Rollout of ${report.namespace}/${report.deployment}`);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>${title}</title>
<style>${styleSheet}</style>
</head>
<body>
<h1>${title}: <span class="${report.isLossless ? 'good' : 'bad'}">${report.isLossless ? 'nothing lost' : escapeHtml(faultText(report))}</span></h1>
<p><span class="key muted"></span>not ready <span class="key good"></span>ready <span class="key warn"></span>being deleted
<span class="key bad"></span>lost. Marks above a bar: EndpointSlice changes. Marks below: applies of nodes. Point at a mark for its time.</p>
${timelineSvg(report, recording)}
<pre>${escapeHtml(watchText(report))}</pre>
</body>
</html>
`;
}

function faultText({ end, packets, requests }: WatchReport): string {
  const lost = requests === undefined ? [] : [`${requests.lost.length} requests lost`];
  const count = packets.reduce((sum, one) => sum + one.count, 0);
  return [...lost, ...(count > 0 ? [`${count} packets lost`] : []), ...(end === undefined ? ['not ended'] : [])].join(
    ', ',
  );
}

const light =
  '--ink: #1d2430; --soft: #5d6878; --line: #d8dde5; --paper: #fff; --good: #2f7fb8; --warn: #e0a11b; --bad: #c8452e; --muted: #b6bfca;';
const dark =
  '--ink: #e6eaf0; --soft: #9aa6b5; --line: #2c343f; --paper: #12161c; --good: #4a9fd8; --warn: #e8b23c; --bad: #e8644c; --muted: #566170;';

/** Light and dark; colours that survive the common colour blindnesses. */
const styleSheet = `
:root { color-scheme: light dark; ${light} }
@media (prefers-color-scheme: dark) { :root { ${dark} } }
body { margin: 24px; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 22px; } h1 .good { color: var(--good); } h1 .bad { color: var(--bad); } p { color: var(--soft); }
pre { overflow-x: auto; font-size: 13px; } .timeline { width: 100%; min-width: 800px; height: auto; }
.key { display: inline-block; width: 14px; height: 10px; margin: 0 5px 0 10px; }
.key.good { background: var(--good); } .key.warn { background: var(--warn); } .key.bad { background: var(--bad); } .key.muted { background: var(--muted); }
.timeline text { font: 12px system-ui, sans-serif; fill: var(--ink); } .timeline .label { text-anchor: end; } .timeline .tick { text-anchor: middle; fill: var(--soft); }
.timeline .grid { stroke: var(--line); } .timeline rect.good { fill: var(--good); } .timeline rect.warn { fill: var(--warn); } .timeline rect.muted { fill: var(--muted); }
.timeline .slice { fill: var(--ink); } .timeline .apply { fill: var(--soft); } .timeline .lost { fill: var(--bad); }
`;
