import { createHash } from 'node:crypto';
import { escapeMarkup } from '../markup.ts';

/** Parts of a page. */
export interface PageParts {
  readonly title: string;
  readonly styles: string;
  /** Markup of the body. */
  readonly body: string;
  /** JSON that the script reads from `#data`; undefined: none. */
  readonly data: unknown;
  /** Empty: none. */
  readonly script: string;
}

/**
 * One self-contained page. Its policy forbids the browser to fetch anything, and to run any script other than the given one, even if
 * a report file contains one.
 */
export function pageFrame({ title, styles, body, data, script }: PageParts): string {
  const hash = createHash('sha256').update(script).digest('base64');
  const scripts = script === '' ? "'none'" : `'sha256-${hash}'`;
  const policy = `default-src 'none'; style-src 'unsafe-inline'; script-src ${scripts}; base-uri 'none'; form-action 'none'`;
  const island = data === undefined ? '' : `<script type="application/json" id="data">${scriptJson(data)}</script>\n`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${escapeMarkup(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeMarkup(title)}</title>
<style>${styles}</style>
</head>
<body>
${body}
${island}${script === '' ? '' : `<script>${script}</script>\n`}</body>
</html>
`;
}

/** JSON that cannot close its `script` element. */
function scriptJson(data: unknown): string {
  return JSON.stringify(data)
    .replaceAll('<', '\\u003c')
    .replaceAll('\u2028', '\\u2028')
    .replaceAll('\u2029', '\\u2029');
}
