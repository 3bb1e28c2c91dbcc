import { expect, test } from 'vitest';
import { skeleton } from '../../src/render/skeleton.ts';
import { rulesPage } from './rules-page.ts';

const page = rulesPage();

test('docs/reference/nftables-rules.md is fresh; else run: nx run backend-nftables:generate', async () => {
  await expect(page).toMatchFileSnapshot('../../../../docs/reference/nftables-rules.md');
});

test.each([
  ['a base chain', /^\| `nat-prerouting` \| nat \| prerouting \| -100 \|$/m],
  ['a map with its key and data', /^\| `frontends4` \| map \| `ip daddr \. .*` \| `meta priority` \| counter \|$/m],
  ['a set of the other family', /^\| `pod-cidrs6` \| set \| `ip6 saddr` \|  \| interval \|$/m],
  ['a chain with its rules', /^chain set-local4 \{\n {2}meta priority set .* map @to-local4 /m],
  ['the last class', /^chain lb6-65536 \{$/m],
  ['the elements that lead to classes', /^\| `lb4-classes` \| \d+ \| `0x100000 : goto lb4-1` \|/m],
])('the page has %s', (_, expected) => {
  expect(page).toMatch(expected);
});

test('a rule that changes, changes the page', () => {
  const table = skeleton('switchyard');
  const items = table.items.filter((item) => item.name !== 'set-local4');
  expect(rulesPage({ ...table, items })).not.toBe(page);
});

test('classes between the first and the last are left out', () => {
  expect(page).not.toMatch(/^chain lb4-2 /m);
});
