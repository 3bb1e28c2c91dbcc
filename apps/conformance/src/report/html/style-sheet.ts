import { timelineStyle } from '@switchyard/rollout';

/** Colours and faces, light and dark; the same family as the rollout experiment's page. */
const base = `
:root { color-scheme: light dark; --paper: #fff; --ink: #1d2430; --soft: #5d6878; --line: #d8dde5; --panel: #f6f8fa;
  --good: #2f7fb8; --warn: #e0a11b; --bad: #c8452e; --muted: #b6bfca; --loss: #c8452e; --new: #1b9e77; --on-warn: #2b2000;
  --pass-ink: #0f6b4f; --pass: #d9f0e7; --fail-ink: #fff; --skip: #edf0f4; --skip-ink: #5d6878; --error: #f2c14e; --focus: #2f7fb8; --bad-ink: #a83420; }
@media (prefers-color-scheme: dark) { :root { --paper: #12161c; --ink: #e6eaf0; --soft: #9aa6b5; --line: #2c343f;
  --panel: #1a2029; --good: #4a9fd8; --warn: #e8b23c; --bad: #d4513a; --muted: #566170; --loss: #e8644c; --new: #35c091;
  --pass-ink: #62d3ab; --pass: #16372d; --skip: #212832; --skip-ink: #9aa6b5; --error: #e8b23c; --focus: #6db8ea; --bad-ink: #ff8a73; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1400px; margin: 0 auto; padding: 24px 24px 48px; }
[data-detail=open] main { padding-bottom: 52vh; }
h1 { font-size: 24px; margin: 0 0 8px; } h2 { font-size: 19px; margin: 34px 0 8px; } h3 { font-size: 15px; margin: 12px 0 4px; }
p { margin: 4px 0 10px; } code, .mono { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 13px; }
h1, h2, h3, p, li, td, th { overflow-wrap: anywhere; }
a { color: var(--good); } .soft { color: var(--soft); } small { font-size: 12px; color: var(--soft); font-weight: 400; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 1px; }
button, input, select { font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--line); border-radius: 6px; padding: 3px 9px; }
button { cursor: pointer; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; } th { text-align: left; font-weight: 600; }
.wide { overflow-x: auto; }
.is-passed { color: var(--pass-ink); } .is-failed, .is-flaky { color: var(--bad-ink); font-weight: 600; } .is-error { color: inherit; font-weight: 600; } .is-skipped { color: var(--soft); }
`;

const overview = `
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(230px, 1fr)); gap: 12px; margin: 16px 0; }
.card { display: flex; flex-direction: column; align-items: stretch; border: 1px solid var(--line); border-radius: 8px; background: var(--panel); padding: 10px 14px; text-align: left; width: 100%; }
.card b { display: block; font-size: 16px; } .card .verdict { display: block; font-size: 20px; font-weight: 600; margin: 2px 0 6px; }
.card[aria-pressed=true] { outline: 2px solid var(--focus); }
.share { display: flex; height: 8px; border-radius: 4px; overflow: hidden; gap: 1px; margin-bottom: 6px; }
.share i { display: block; min-width: 3px; } .share .s-passed { background: var(--new); } .share .s-failed { background: var(--bad); }
.share .s-error { background: var(--error); } .share .s-skipped { background: var(--muted); }
`;

const matrix = `
#filter { position: sticky; top: 0; z-index: 4; display: flex; flex-wrap: wrap; gap: 6px 10px; align-items: center; background: var(--paper); padding: 10px 0; min-height: 50px; }
#words { flex: 1 1 220px; max-width: 420px; } #tag, #only { max-width: 190px; }
#filter fieldset { border: 0; padding: 0; margin: 0; display: flex; flex-wrap: wrap; gap: 4px; } #filter legend { float: left; }
#filter label.chip { border: 1px solid var(--line); border-radius: 14px; padding: 2px 10px 2px 7px; font-size: 13px; cursor: pointer; white-space: nowrap; }
#filter label.chip:has(:checked) { border-color: var(--focus); background: var(--panel); font-weight: 600; } #filter .chip input { margin: 0 4px 0 0; vertical-align: -2px; }
[data-idle=true] { visibility: hidden; } #shown { color: var(--soft); font-size: 13px; margin-left: auto; }
#cases { width: 100%; border-collapse: separate; border-spacing: 0; font-size: 13px; line-height: 20px; }
#cases thead th { position: sticky; top: var(--bar, 50px); z-index: 3; background: var(--paper); border-bottom: 2px solid var(--line); padding: 4px 6px; vertical-align: bottom; }
#cases thead th:not(:first-child) { text-align: center; width: 84px; font-size: 12px; line-height: 15px; } #cases thead small { display: block; }
#cases th[scope=row] { font-weight: 400; padding: 0 8px 0 26px; max-width: 0; width: auto; border-bottom: 1px solid var(--line); }
#cases .line { display: flex; gap: 12px; white-space: nowrap; overflow: hidden; } #cases .id { font-weight: 500; flex: none; } #cases .title { color: var(--soft); overflow: hidden; text-overflow: ellipsis; }
#cases td { scroll-margin: 140px 0 54vh; text-align: center; padding: 0; border-bottom: 1px solid var(--line); border-left: 3px solid var(--paper); cursor: pointer; font-weight: 600; }
#cases td.c-passed { background: var(--pass); color: var(--pass-ink); } #cases td.c-failed { background: var(--bad); color: var(--fail-ink); }
#cases td.c-error { background: var(--error); color: #2b2000; } #cases td.c-skipped { background: var(--skip); color: var(--skip-ink); }
#cases td.c-flaky { background: repeating-linear-gradient(135deg, var(--bad) 0 6px, color-mix(in srgb, var(--bad) 78%, #fff) 6px 9px); color: var(--fail-ink); font-size: 17px; text-shadow: 0 0 3px #000; }
#cases td.c-none { color: var(--muted); cursor: default; } #cases td[aria-selected=true] { outline: 3px solid var(--focus); outline-offset: -3px; }
#cases tr.group th { padding: 0; border-bottom: 1px solid var(--line); background: var(--panel); } #cases tr.group td { background: var(--panel); cursor: default; font-weight: 500; font-size: 12px; color: var(--soft); border-left-color: var(--panel); }
#cases tr.group button { width: 100%; border: 0; border-radius: 0; background: none; text-align: left; font-weight: 600; padding: 4px 8px; } #cases tr.group td.bad { color: var(--bad-ink); font-weight: 700; }
#cases tr.group button::before { content: "▸"; display: inline-block; width: 18px; color: var(--soft); } #cases tr.group button[aria-expanded=true]::before { content: "▾"; }
#cases td.flakes { cursor: default; font-weight: 400; color: var(--soft); width: 64px; } #cases tr:hover > th[scope=row] { background: var(--panel); }
.grids { display: grid; grid-template-columns: repeat(auto-fit, minmax(440px, 1fr)); gap: 4px 28px; }
.grid table { font-size: 12px; } .grid th { padding: 2px 8px 2px 0; font-weight: 500; } .grid thead th { color: var(--soft); } .grid td { padding: 2px 10px 2px 0; vertical-align: top; }
.grid .first { border-left: 1px solid var(--line); padding-left: 8px; } .grid small { display: block; line-height: 14px; } .grid tbody tr:hover { background: var(--panel); }
.grid .state { border: 0; background: none; padding: 0; text-align: left; color: inherit; font-size: 12.5px; line-height: 15px; } .grid .state:hover { text-decoration: underline; } .grid tbody th { width: 150px; }
.marks { display: grid; gap: 1px; justify-content: start; } .marks i { display: block; width: 11px; height: 9px; border-radius: 2px; background: var(--new); cursor: pointer; }
.marks .c-failed { background: var(--bad); outline: 1px solid var(--bad); } .marks .c-error { background: var(--error); } .marks .c-skipped { background: var(--muted); } .marks .c-none { background: none; border: 1px dotted var(--muted); }
.marks .c-flaky { background: repeating-linear-gradient(135deg, var(--bad) 0 3px, var(--paper) 3px 5px); }
.key i { display: inline-block; vertical-align: -1px; margin: 0 4px 0 12px; }
`;

const details = `
#detail { position: fixed; inset: auto 0 0 0; height: 50vh; z-index: 9; overflow: auto; background: var(--paper); border-top: 3px solid var(--focus); padding: 8px 24px 24px; box-shadow: 0 -6px 24px rgb(0 0 0 / 25%); }
#detail h2 { margin: 4px 60px 2px 0; font-size: 17px; } #detail p { margin: 0 0 4px; font-size: 14px; } #close { position: sticky; top: 0; float: right; z-index: 1; }
ul.tags { list-style: none; display: flex; flex-wrap: wrap; gap: 4px; margin: 0 0 8px; padding: 0; } ul.tags li { font-size: 12px; border: 1px solid var(--line); border-radius: 10px; padding: 0 8px; color: var(--soft); }
table.checks { font-size: 13px; min-width: 100%; } .slot:not(:empty) { border-left: 4px solid var(--bad); padding-left: 14px; margin: 4px 0 14px; } table.checks th, table.checks td { text-align: left; vertical-align: top; padding: 4px 14px 4px 0; border-bottom: 1px solid var(--line); min-width: 90px; }
table.checks thead th { color: var(--soft); font-weight: 600; } table.checks th:first-child { min-width: 250px; } table.checks th[scope=row] small { white-space: nowrap; } td.as-expected b { color: var(--pass-ink); } table.checks th[scope=row] { font-weight: 400; } table.checks thead .outcome { white-space: nowrap; display: block; font-weight: 400; } th.chosen { box-shadow: inset 0 -3px var(--focus); }
.not-expected { color: var(--bad-ink); font-weight: 600; }
article.failure { border: 1px solid var(--line); border-left: 4px solid var(--bad); border-radius: 8px; margin: 10px 0; padding: 8px 14px; }
article.failure.is-lab { border-left-color: var(--error); } article.failure summary { cursor: pointer; } article.failure h3 { display: inline; margin: 0; }
.paths { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(420px, 100%), 1fr)); gap: 12px; margin: 6px 0 14px; }
.path { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 6px 12px; min-width: 0; } .path h4 { margin: 0 0 4px; font-size: 13px; color: var(--soft); }
.path ol { margin: 0; padding-left: 24px; font-size: 12.5px; } .path li::marker { color: var(--soft); } .path li { white-space: pre-wrap; }
dl.check { display: grid; grid-template-columns: max-content 1fr; gap: 0 14px; margin: 8px 0 4px; font-size: 14px; } dl.check dt { color: var(--soft); } dl.check dd { margin: 0; overflow-wrap: anywhere; white-space: pre-wrap; }
table.plain { width: 100%; font-size: 14px; } table.plain th, table.plain td { padding: 4px 14px 4px 0; border-bottom: 1px solid var(--line); vertical-align: top; text-align: left; } table.plain thead th { color: var(--soft); }
table.plain td.number { text-align: right; width: 70px; } table.kinds { width: auto; margin: 10px 0; } table.kinds td.number { width: auto; min-width: 60px; }
`;

const pictures = `
figure { margin: 3px 0; } figcaption { display: inline; } .ok { color: var(--pass-ink); } .fail { color: var(--bad-ink); }
.picture { margin: 6px 0 14px; background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 10px; overflow-x: auto; } .picture svg { display: block; width: 100%; min-width: 900px; height: auto; }
details.rollout > summary { cursor: pointer; }
`;

const print = `
@media (max-width: 760px) { main { padding: 14px 12px 40px; } #filter { position: static; } #cases { --bar: 0px; } #cases .title { display: none; } #cases .line { white-space: normal; } #cases th[scope=row] { padding-left: 8px; } #cases .id { flex: initial; }
  #cases thead th:not(:first-child) { width: 36px; } #cases thead th:not(:first-child) > span { writing-mode: vertical-rl; display: inline-block; } #cases tr.group td { font-size: 10px; } .grids { grid-template-columns: 1fr; } .grid { overflow-x: auto; } #detail { padding: 8px 12px; } }
@media print { :root { color-scheme: light; --paper: #fff; --ink: #000; --soft: #444; --line: #bbb; --panel: #fff; --pass: #e5f5ee; --pass-ink: #0f6b4f; --bad-ink: #a83420; }
  body { font-size: 11px; } main { padding: 0; max-width: none; } #filter, #detail, .noprint { display: none; } * { print-color-adjust: exact; } #cases thead th { position: static; } #cases thead { display: table-header-group; }
  article.failure { break-inside: auto; } tr { break-inside: avoid; } .picture svg { min-width: 0; } }
@media (forced-colors: active) { #cases td.c-failed, .marks .c-failed { forced-color-adjust: none; } }
`;

/** The page's styles. `columns`: how many proxies, for showing one of them alone. */
export function styleSheet(columns: number): string {
  return base + overview + matrix + details + timelineStyle + pictures + print + onlyRules(columns);
}

/** Rules that hide all other columns if one is chosen. */
function onlyRules(columns: number): string {
  return Array.from({ length: columns }, (_, index) => {
    const others = Array.from({ length: columns }, (__, other) => other).filter((other) => other !== index);
    if (others.length === 0) return '';
    const selector = others.map((other) => `[data-only="${index}"] #cases tr > :nth-child(${other + 2})`);
    return `${selector.join(', ')} { display: none; }\n`;
  }).join('');
}
