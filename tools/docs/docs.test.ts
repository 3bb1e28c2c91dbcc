import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { root, workspaces } from '../workspace.ts';
import { linkFaults, nameFaults, pathFaults } from './faults.ts';
import { anchorsOf, codeBlocksOf, linksOf, markdownPages, type MarkdownPage, parsePage } from './markdown.ts';

const known = ['config', 'flags', 'metrics']
  .map((name) => readFileSync(join(root, `docs/reference/${name}.md`), 'utf8'))
  .join('\n');

test('every relative link and anchor of every page leads somewhere', () => {
  assert.deepEqual(linkFaults(), []);
});

test('every path that a page names is there', () => {
  assert.deepEqual(pathFaults(), []);
});

test('the README is short: at most 120 lines of at most 120 characters', () => {
  const lines = readFileSync(join(root, 'README.md'), 'utf8').trimEnd().split('\n');
  assert.ok(lines.length <= 120, `${lines.length} lines`);
  assert.deepEqual(
    lines.filter((line) => line.length > 120),
    [],
  );
});

test('every own flag and every metric that a page names exists', () => {
  assert.deepEqual(nameFaults(known), []);
});

test('every block of code that the page about backends shows stands in its example', () => {
  const folder = join(root, 'examples/backend-json-file/src');
  const code = readdirSync(folder).map((file) => readFileSync(join(folder, file), 'utf8'));
  const page = readFileSync(join(root, 'docs/build-on/backends.md'), 'utf8');
  const blocks = [...page.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, block = '']) => block);
  assert.ok(blocks.length > 5);
  assert.deepEqual(
    blocks.filter((block) => !code.some((text) => text.includes(block))),
    [],
  );
});

/** Blocks of YAML and JSON that do not parse. A deliberate part of a document has `fragment` after its language. */
function dataFaults(pages: readonly MarkdownPage[]): readonly string[] {
  return pages.flatMap((page) =>
    codeBlocksOf(page)
      .filter(({ info }) => /^(yaml|json)$/.test(info))
      .flatMap(({ info, text, line }) => {
        const fault = info === 'yaml' ? yamlFault(text) : jsonFault(text);
        return fault === undefined ? [] : [`${page.path}:${line}: ${fault}`];
      }),
  );
}

function yamlFault(text: string): string | undefined {
  return [...parseAllDocuments(text)].flatMap(({ errors }) => errors)[0]?.message.split('\n')[0];
}

function jsonFault(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return String(error);
  }
}

test('every block of YAML or JSON parses', () => {
  const pages = markdownPages();
  assert.ok(pages.flatMap(codeBlocksOf).some(({ info }) => info === 'yaml'));
  assert.deepEqual(dataFaults(pages), []);
});

test('a block of YAML or JSON that does not parse is found; a fragment is left out', () => {
  const blocks = [
    '```yaml',
    'a: [1',
    '```',
    '',
    '```yaml fragment',
    'a: [1',
    '```',
    '',
    '  ```json',
    '{"a": 1,}',
    '  ```',
  ];
  const faults = dataFaults([parsePage('docs/x.md', [...blocks, '```json', '{"a": 1}', '```'].join('\n'))]);
  assert.equal(faults.length, 2);
  assert.match(faults[0] ?? '', /^docs\/x\.md:1: Flow sequence/);
  assert.match(faults[1] ?? '', /^docs\/x\.md:9: SyntaxError/);
});

test('every block of code has a language that GitHub and the site know, or none', () => {
  const languages = /^(sh|ts|js|yaml|json|nft|mermaid)?( |$)/;
  const faults = markdownPages().flatMap((page) =>
    codeBlocksOf(page)
      .filter(({ info }) => !languages.test(info))
      .map(({ info, line }) => `${page.path}:${line}: ${info}`),
  );
  assert.deepEqual(faults, []);
});

test('the picture of packages has an arrow, or several, for each dependency, and no other arrow', () => {
  const arrows = [...readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8').matchAll(/^ +([\w-]+) --> ([\w-]+)$/gm)];
  const nameOf = (name: string): string => name.replace('@switchyard/', '');
  const dependencies = new Map(
    workspaces().map((one) => [nameOf(one.name), one.dependencies.filter((name) => name !== nameOf(name)).map(nameOf)]),
  );
  const led = (from: string): readonly string[] =>
    arrows.flatMap(([, a, b = '']) => (a === from ? [b, ...led(b)] : []));
  const faults = [...dependencies].flatMap(([name, wanted]) => {
    const found = new Set(led(name));
    return wanted.filter((one) => !found.has(one)).map((one) => `${name} --> ${one} is missing`);
  });
  const wrong = arrows.filter(([, a = '', b = '']) => dependencies.get(a)?.includes(b) !== true);
  assert.deepEqual([...faults, ...wrong.map(([text]) => text)], []);
});

const faultyPage = parsePage(
  'docs/x.md',
  [
    '# One `two`, three!',
    '# One two three',
    '[a](nowhere.md) [b](#one-two-three) [c](#one-two-three-1) [d](#four) [e](../../out.md)',
    '```',
    '[f](in-a-block.md) # heading',
    '```',
    '`[g](in-code.md)` [h](https://example.com/#x) [i](operate/metrics.md#nothing) [j](../LICENSE)',
    '`tools/docs/docs.test.ts` `tools/docs/{faults,nothing}.ts` `--switchyard-dump` `--switchyard-dumps`',
    '`switchyard_drift_total` `switchyard_drifts_total` `kubeproxy_network_programming_duration_seconds_bucket`',
  ].join('\n'),
);

test('a link that leads nowhere is found, in prose only', () => {
  assert.deepEqual(linkFaults([faultyPage]), [
    'docs/x.md:3: nowhere.md: there is no such file',
    'docs/x.md:3: #four: the page has no such heading',
    'docs/x.md:3: ../../out.md: leads out of the checkout',
    'docs/x.md:7: operate/metrics.md#nothing: the page has no such heading',
  ]);
  assert.equal(linksOf(faultyPage).length, 8);
  assert.deepEqual([...anchorsOf(faultyPage)], ['one-two-three', 'one-two-three-1']);
});

test('a path, a flag and a metric that are not there are found', () => {
  assert.deepEqual(pathFaults([faultyPage]), ['docs/x.md: tools/docs/nothing.ts: there is no such file']);
  assert.deepEqual(nameFaults(known, [faultyPage]), [
    'docs/x.md: --switchyard-dumps: there is no such flag or metric',
    'docs/x.md: switchyard_drifts_total: there is no such flag or metric',
  ]);
});
