import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'vitest';
import { createMarkdownRenderer } from 'vitepress';
import { anchorsOf, parsePage } from '../docs/markdown.ts';
import { root } from '../workspace.ts';
import { checkSite, siteFaults } from './check.ts';
import { diagram, markdown, searchText } from './markdown.ts';
import { linkedPaths, siteFile, siteLink, sitePages, sitePath, titleOf } from './pages.ts';
import { folderPages, sections } from './sections.ts';

// The build of the whole site is a suite of `./dev test`, see tools/test/suites.ts.

for (const [path, expected] of [
  ['README.md', 'index.md'],
  ['docs/README.md', 'docs.md'],
  ['docs/operate/install.md', 'operate/install.md'],
  ['docs/contribute/README.md', 'contribute/index.md'],
  ['packages/core/README.md', 'packages/core/index.md'],
  ['CONTRIBUTING.md', 'CONTRIBUTING.md'],
] as const) {
  test(`${path} is ${expected} on the site`, () => assert.equal(sitePath(path), expected));
}

for (const [from, target, expected] of [
  ['docs/operate/install.md', '../../deploy/README.md#a', '/deploy/index.md#a'],
  ['docs/README.md', 'design', '/design/index.md'],
  ['README.md', 'docs/design/adr/', '/design/adr/index.md'],
  ['README.md', 'packages/backend-ebpf/bpf/LICENSE', '/packages/backend-ebpf/bpf/LICENSE.txt'],
  ['docs/test/e2e.md', '../../e2e/matrix.json', '/e2e/matrix.json'],
  ['README.md', '#licence', '#licence'],
  ['README.md', 'https://example.com/a.md', 'https://example.com/a.md'],
  ['README.md', 'mailto:a@example.com', 'mailto:a@example.com'],
] as const) {
  test(`${target} in ${from} leads to ${expected}`, () => assert.equal(siteLink(from, target), expected));
}

test('no two pages have the same place on the site', () => {
  const places = [
    ...sitePages().map(({ path }) => sitePath(path)),
    ...folderPages().map(({ folder }) => sitePath(`${folder}/README.md`)),
    ...linkedPaths().files.map(siteFile),
  ];
  assert.deepEqual(
    places.filter((place, index) => places.indexOf(place) !== index),
    [],
  );
});

test('a title is the first heading without markup, the entry point of an API report, or the name of the file', () => {
  const titles = [
    parsePage('docs/a.md', '\n# The `./dev` command\n# Second\n'),
    parsePage('docs/reference/api/core.api.md', '## API Report File for "@switchyard/core"\n'),
    parsePage('docs/reference/api/core-engine.api.md', '## API Report File for "@switchyard/core"\n'),
    parsePage('CODE_OF_CONDUCT.md', 'Text.\n```sh\n# no heading\n```\n'),
  ].map(titleOf);
  assert.deepEqual(titles, ['The ./dev command', '@switchyard/core', '@switchyard/core/engine', 'Code of conduct']);
});

const list = '[b](operate/b.md) [c](operate/c.md) [decision records](design/adr)';
const few = [
  ['docs/README.md', list],
  ['docs/figures.md', '# Figures'],
  ['docs/operate/a.md', '# Not listed'],
  ['docs/operate/b.md', '# Z'],
  ['docs/operate/c.md', '# A'],
  ['docs/operate/README.md', '# First'],
  ['docs/brand-new/x.md', '# X'],
  ['docs/design/adr/0001.md', '# One'],
  ['packages/core/README.md', '# core'],
  ['CONTRIBUTING.md', '# Contributing'],
].map(([path = '', text = '']) => parsePage(path, text));

test('sections follow the folders of docs, their pages the list of all pages; a new folder needs no entry', () => {
  const shown = sections(few).map(({ title, pages, groups }) => [
    title,
    pages.map(titleOf),
    groups.map((group) => [group.title, group.pages.map(titleOf)]),
  ]);
  assert.deepEqual(
    shown.filter(([, pages = [], groups = []]) => pages.length + groups.length > 0),
    [
      ['Operate', ['First', 'Z', 'A', 'Not listed'], []],
      ['Build on', [], [['Packages', ['core']]]],
      ['Contribute', ['Contributing'], []],
      ['Design', [], [['Decision records', ['One']]]],
      ['Brand new', ['X'], []],
    ],
  );
});

test('a page in a folder without a section is refused by name', () => {
  assert.throws(() => sections([parsePage('elsewhere/x.md', '# X')]), /^Error: elsewhere\/x\.md: no section/);
});

test('each page of the checkout is in one section, but for the start page and those directly in docs', () => {
  const placed = sections().flatMap(({ pages, groups }) => [...pages, ...groups.flatMap((group) => group.pages)]);
  const paths = sitePages().map(({ path }) => path);
  const alone = paths.filter((path) => path === 'README.md' || dirname(path) === 'docs');
  assert.ok(paths.length > 100 && alone.length >= 3);
  assert.deepEqual([...placed.map(({ path }) => path), ...alone].sort(), paths.sort());
});

test('a folder without a README.md gets a list of its pages', () => {
  const pages = new Map(folderPages(few).map(({ folder, content }) => [folder, content]));
  assert.equal(pages.get('docs/design/adr'), '# Decision records\n\n- [One](/design/adr/0001.md)\n');
  assert.ok(!pages.has('docs/operate'));
  assert.match(pages.get('docs/design') ?? '', /## Decision records\n\n- \[One\]/);
});

test('a diagram becomes a picture that needs no other server', () => {
  const svg = diagram('flowchart TD\n  one --> two\n');
  assert.match(svg, /^<svg [^]*<text[^>]*>one<\/text>|^<svg [^]*>one</);
  assert.ok(!svg.includes('@import') && !svg.replaceAll('http://www.w3.org/', '').includes('http'), svg);
});

test(
  'a page is rendered as GitHub shows it, with links of the site; the search index has no colours',
  { timeout: 60_000 },
  async () => {
    const text = [
      '# One `two`, three: {a} &c.',
      '# One two, three a c',
      '# [Link](x.md) 8) ü_ü',
      'Text [install](install.md#x) [list](../design) {#id}',
      '',
      `| ${'x'.repeat(41)} | short |\n|---|---|\n| ${'x'.repeat(41)} | short |`,
      '',
      '```mermaid\nflowchart TD\n  one --> two\n```',
      '```nft\nadd # comment\n```',
      'Text.\n\n    indented\n',
    ].join('\n');
    const md = await createMarkdownRenderer(root, markdown);
    const env = { path: join(root, 'docs/operate/x.md'), relativePath: 'operate/x.md', cleanUrls: false };
    const html = md.render(text, { ...env });
    const ids = [...html.matchAll(/<h1 id="([^"]*)"/g)].map(([, id]) => id);
    assert.deepEqual(ids, [...anchorsOf(parsePage('docs/operate/x.md', text))]);
    assert.match(html, /<a href="\/operate\/install\.html#x">/);
    assert.match(html, /<a href="\/design\/(index\.html)?">list<\/a> \{#id\}/);
    assert.match(html, /<td class="long">x+<\/td>\s*<td>short<\/td>/);
    assert.match(html, /<div class="diagram" v-html="[^"]*svg/);
    assert.match(html, /style="--shiki/);
    assert.match(html, /<div class="language-[^>]*>(?:(?!<div)[^])*indented/);
    const plain = searchText(text, { ...env }, md);
    assert.ok(!plain.includes('--shiki') && plain.includes('add # comment'), plain);
    assert.equal(md.render(text, { ...env }), html);
  },
);

/** Faults of a site with these files. */
function faultsOf(files: Readonly<Record<string, string>>, base = '/b/'): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), 'swy-site-'));
  try {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
    const faults = siteFaults(folder, base);
    if (faults.length > 0) assert.throws(() => checkSite(folder, base), new RegExp(`has ${faults.length} fault`));
    else checkSite(folder, base);
    return faults.toSorted();
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('links, anchors and files that are there are no faults, nor is a link to another server', () => {
  const page =
    '<a href="/b/x/"></a> <a href="#h"></a> <h1 id="h"> <a href="https://example.com/"> <img src="data:,"> <img src="/b/a.png">';
  assert.deepEqual(faultsOf({ 'index.html': page, 'x/index.html': '<a href="../index.html#h">', 'a.png': '' }), []);
});

test('links that lead nowhere and addresses of other servers are found', () => {
  const page = [
    '<a href="/b/none.html"> <a href="#none"> <a href="/x.html"> <img src="none.png">',
    '<script src="https://example.com/a.js"></script> <link rel="stylesheet" href="//example.com/a.css">',
  ].join('\n');
  assert.deepEqual(
    faultsOf({ 'index.html': page, 'a.css': "@import url('https://example.com/f'); url(//example.com/g)" }),
    [
      'a.css: //example.com/g: is on another server; the site must work offline',
      'a.css: https://example.com/f: is on another server; the site must work offline',
      'index.html: #none: the page has no such anchor',
      'index.html: //example.com/a.css: is on another server; the site must work offline',
      'index.html: /b/none.html: the site has no such file',
      'index.html: /x.html: leads out of /b/',
      'index.html: https://example.com/a.js: is on another server; the site must work offline',
      'index.html: none.png: the site has no such file',
    ],
  );
});
