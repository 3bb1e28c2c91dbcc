import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { notFailed, publishedFaultsPage } from './published-faults-page.ts';

const page = new URL('../../../../docs/reference/published-faults.md', import.meta.url);

test('docs/reference/published-faults.md is fresh; else run: nx run conformance:generate', () => {
  if (process.env['CASES_PAGE'] === 'write') writeFileSync(page, publishedFaultsPage());
  expect(readFileSync(page, 'utf8')).toBe(publishedFaultsPage());
});

test('what a published proxy does wrong fails in its report', () => {
  expect(notFailed()).toEqual([]);
});
