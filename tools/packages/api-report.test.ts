import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { root } from '../workspace.ts';
import { apiReports, entryPoints } from './api-report.ts';

// A change of a package's exports must be visible in review.

const write = 'if the change is meant: tsc -b && node --conditions=@switchyard/source tools/packages/api-report.ts';
let temporary = '';
let compare: ReturnType<typeof apiReports>;

beforeAll(async () => {
  temporary = await mkdtemp(join(tmpdir(), 'swy-api-'));
  compare = apiReports(entryPoints(), 'compare', temporary);
});

afterAll(() => rm(temporary, { recursive: true, force: true }));

for (const entry of entryPoints()) {
  test(`docs/reference/api/${entry.page}.api.md has what ${entry.folder} exports`, () => {
    assert.ok(compare(entry), `${entry.page}.api.md differs from what is exported; ${write}`);
  });
}

test('there is no page of a removed entry point', () => {
  const pages = entryPoints().map(({ page }) => `${page}.api.md`);
  assert.deepEqual(readdirSync(join(root, 'docs/reference/api')).toSorted(), pages.toSorted());
});

test('every exported name says what it is', () => {
  const bare = entryPoints().flatMap(({ page }) => {
    const text = readFileSync(join(root, `docs/reference/api/${page}.api.md`), 'utf8');
    return [...text.matchAll(/^\/\/ @public \(undocumented\)\n(.*)$/gm)].map(([, line]) => `${page}: ${line}`);
  });
  assert.deepEqual(bare, []);
});
