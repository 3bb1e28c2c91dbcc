import { readFileSync, writeFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { pagesOf } from '../../src/profiles/commands.ts';
import { profilesPage } from './profiles-page.ts';

const page = new URL('../../../../docs/reference/conformance-profiles.md', import.meta.url);
const reports = fileURLToPath(new URL('../../../../docs/conformance-reports', import.meta.url));

test('docs/reference/conformance-profiles.md is fresh; else run: nx run conformance:generate', () => {
  if (process.env['CASES_PAGE'] === 'write') writeFileSync(page, profilesPage());
  expect(readFileSync(page, 'utf8')).toBe(profilesPage());
});

test('docs/conformance-reports is fresh; else run: switchyard-conformance pages docs/conformance-reports', async () => {
  const io = { readText: (file: string) => readFile(file, 'utf8'), listFolder: (folder: string) => readdir(folder) };
  for (const [name, text] of await pagesOf(reports, io)) {
    expect(await readFile(`${reports}/${name}`, 'utf8'), name).toBe(text);
  }
});
