import type { RowSpec } from './panels.ts';

const width = 960;
const margin = 12;
const panel = { width: (width - 4 * margin) / 3, height: 84 };
const heading = 30;
const perLine = 3;

/** The dashboard as a drawing of its panels with what each shows; no data. */
export function dashboardPicture(rows: readonly RowSpec[]): string {
  const parts: string[] = [];
  let y = margin;
  for (const row of rows) {
    parts.push(text(margin, y + 18, 'row', row.title));
    y += heading;
    for (const [index, { title, queries }] of row.panels.entries()) {
      const x = margin + (index % perLine) * (panel.width + margin);
      const top = y + Math.floor(index / perLine) * (panel.height + margin);
      parts.push(
        `<rect x="${x}" y="${top}" width="${panel.width}" height="${panel.height}" rx="4"/>`,
        text(x + 10, top + 20, 'title', title),
        ...queries
          .slice(0, 3)
          .map(({ legend }, at) => text(x + 10, top + 40 + at * 15, 'legend', legend.replaceAll(/[{}]/g, ''))),
      );
    }
    y += Math.ceil(row.panels.length / perLine) * (panel.height + margin);
  }
  const style =
    'svg{font-family:sans-serif;background:#fff}rect{fill:#f4f5f7;stroke:#c8ccd4}' +
    '.row{font-size:15px;font-weight:bold;fill:#1f2937}.title{font-size:12px;font-weight:bold;fill:#1f2937}' +
    '.legend{font-size:11px;fill:#57606a}';
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${y}" viewBox="0 0 ${width} ${y}">`,
    `<style>${style}</style>`,
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}

function text(x: number, y: number, kind: string, words: string): string {
  const escaped = words.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text x="${Math.round(x)}" y="${Math.round(y)}" class="${kind}">${escaped}</text>`;
}
