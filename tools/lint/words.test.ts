import assert from 'node:assert/strict';
import { test } from 'vitest';
import { wordList } from './word-list.ts';
import { countWords, densityOf, describeHit, folderOf, judge, lowered, parseDiff, type WordCount } from './words.ts';

const namesOf = ({ hits }: WordCount): readonly string[] => hits.map(({ line, pattern }) => `${line} ${pattern.name}`);

for (const { name, examples } of wordList) {
  test.each(examples)(`"${name}" is found in: %s`, (example) => {
    const path = /^(?:\/|log)/.test(example) ? 'packages/core/src/x.ts' : 'docs/x.md';
    assert.deepEqual(namesOf(countWords(path, `\n${example}\n`)), [`2 ${name}`]);
  });
}

test('plain text passes', () => {
  const plain = [
    '/** Kernel elements that differ from the rendering. */',
    '/** Returns the endpoints of a service; empty if none is usable. */',
    "const why = 'another process deleted the table; rewriting everything';",
    '// Listing load balancers failed; until it succeeds no Service gets an address.',
    '// The command tells kubectl which cluster to use.',
  ].join('\n');
  assert.deepEqual(countWords('x.ts', plain), { hits: [], proseLines: 5, markerFaults: [] });
});

test('only prose counts: comments, texts of three words or more, and Markdown but for indented code', () => {
  const code = ['const nobody = 65_534;', "user('nobody');", "say('nobody is there');", 'say(`nobody is there`);'].join(
    '\n',
  );
  assert.deepEqual(namesOf(countWords('x.ts', code)), ['3 nobody, somebody', '4 nobody, somebody']);
  assert.deepEqual(namesOf(countWords('x.md', 'nobody\n\n    nobody')), ['1 nobody, somebody']);
  assert.equal(countWords('x.md', 'one\n\n    two\nthree').proseLines, 2);
});

test('a marker with a reason exempts its line, or the next one', () => {
  const text = [
    '// runs as nobody // wording: the name of a user',
    '// wording: the name of a user',
    '// runs as nobody',
    '// nobody else',
  ].join('\n');
  assert.deepEqual(countWords('x.ts', text).markerFaults, []);
  assert.deepEqual(namesOf(countWords('x.ts', text)), ['4 nobody, somebody']);
  assert.deepEqual(namesOf(countWords('x.md', 'As nobody <!-- wording: a user -->')), []);
  assert.deepEqual(namesOf(countWords('x.yaml', '# wording: a user\n# as nobody')), []);
});

test('a marker without a reason, and one that exempts nothing, are faults', () => {
  assert.deepEqual(countWords('x.ts', '// nobody // wording:').markerFaults, ['x.ts:1: the marker has no reason']);
  assert.deepEqual(countWords('x.ts', '// wording: why not\n// plain').markerFaults, [
    'x.ts:1: the marker exempts nothing; remove it',
  ]);
});

test('folders are packages with their tests, and the rest by first folder', () => {
  const rows = {
    'packages/core/test/a.ts': 'packages/core',
    'docs/operate/kind.md': 'docs',
    'docs/design/host.md': 'docs',
  };
  for (const [path, folder] of Object.entries(rows)) assert.equal(folderOf(path), folder);
  assert.equal(folderOf('README.md'), '.');
  assert.equal(folderOf('tools/lint/run.ts'), 'tools');
});

const counted = new Map([['docs', countWords('docs/x.md', 'Nobody here.\nPlain.\nSomebody there.')]]);
const allowed = (docs: number) => ({ goal: 5, folders: { docs } });

test('more hits than allowed fail and name the new lines; without changed lines, all of the folder', () => {
  const { faults, advice } = judge(counted, allowed(1), () => new Set(['docs/x.md:3']));
  assert.equal(faults.length, 2);
  assert.match(faults[0] ?? '', /^docs\/x\.md:3: wording "nobody, somebody" hides who acts; write name the actor/);
  assert.match(
    faults[1] ?? '',
    /^docs: 2 hits of the word list, 1 allowed \(666\.7 per 1,000 lines of prose; the goal is 5\)/,
  );
  assert.deepEqual(advice, []);
  assert.equal(judge(counted, { goal: 5, folders: {} }, () => new Set()).faults.length, 3);
});

test('as many hits as allowed pass, and fewer ask for a lower number', () => {
  assert.deepEqual(
    judge(counted, allowed(2), () => new Set()),
    { faults: [], advice: [] },
  );
  const { faults, advice } = judge(counted, allowed(3), () => new Set());
  assert.deepEqual(faults, []);
  assert.match(advice[0] ?? '', /^docs: 2 hits of the word list, 3 allowed; lower it: node .* --write$/);
});

test('the table is lowered, extended by new folders, and never raised', () => {
  assert.deepEqual(lowered(counted, { goal: 5, folders: { docs: 3, old: 1 } }), allowed(2));
  assert.deepEqual(lowered(counted, allowed(1)), allowed(1));
  assert.deepEqual(lowered(counted, { goal: 5, folders: {} }), allowed(2));
});

test('the density is per 1,000 lines of prose', () => {
  assert.equal(densityOf({ hits: [], proseLines: 0 }), 0);
  assert.equal(densityOf(countWords('x.md', `Nobody.\n${'Plain.\n'.repeat(199)}`)), 5);
});

test('a hit says where it is, why it is one, and what to write', () => {
  const [hit] = countWords('x.md', 'All at that.').hits;
  assert.ok(hit);
  assert.match(
    describeHit(hit),
    /^x\.md:1: wording "all the same, thereby, at that" filler.*; write leave it out.*\n {4}All at that\.$/,
  );
});

test('changed lines are read from a diff without context', () => {
  const diff = [
    '--- a/a.md',
    '+++ b/a.md',
    '@@ -1 +1,2 @@ heading',
    '-x',
    '+y',
    '+z',
    '+++ b/b.md',
    '@@ -4,2 +3,0 @@',
    '@@ -9 +7 @@',
  ].join('\n');
  assert.deepEqual([...parseDiff(diff)], ['a.md:1', 'a.md:2', 'b.md:7']);
});
