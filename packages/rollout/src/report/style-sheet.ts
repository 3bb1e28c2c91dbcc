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
