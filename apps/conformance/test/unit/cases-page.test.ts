import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { casesPage, differences } from './cases-page.ts';

const page = casesPage();

const file = new URL('../../../../docs/reference/conformance-cases.md', import.meta.url);

// `nx run conformance:generate` writes the page. A release does; a new scenario may wait for it.
test('docs/reference/conformance-cases.md is fresh but for new scenarios; else run: nx run conformance:generate', () => {
  if (process.env['CASES_PAGE'] === 'write') writeFileSync(file, page);
  expect(differences(readFileSync(file, 'utf8'), page)).toEqual([]);
});

describe('a difference of the page', () => {
  const row = '| `scenario/new-one/` ipv4, ipv6 | it works | KEP-1669 | tcp |';
  const old = page.split('\n').find((line) => line.startsWith('| `scenario/etp-local/`')) ?? '';

  test('is no scenario that the page lacks', () => {
    expect(differences(page.replace(`${old}\n`, ''), page)).toEqual([]);
  });

  test.each([
    ['a scenario that is no more', page.replace(old, `${row}\n${old}`)],
    ['another title', page.replace(old, old.replace('externalTrafficPolicy Local', 'The policy'))],
    ['a missing case of the matrix', page.replace(/^\| `matrix\/nodePort\/Local\/ready-remote-only\/`.*\n/m, '')],
    ['a changed rule', page.replace('KEP-1669: where', 'KEP-1669: if')],
  ])('is %s', (_, text) => {
    expect(text).not.toBe(page);
    expect(differences(text, page)).not.toEqual([]);
  });
});

test.each([
  ['a case, with its families', /^\| `scenario\/etp-local\/` ipv4, ipv6 \| externalTrafficPolicy Local keeps/m],
  ['a dual-stack case', /^\| `scenario\/dual-stack-policies\/` dual-ipv4, dual-ipv6 \|/m],
  ['why a mode leaves a case out', /^\| `scenario\/unknown-port-sctp\/` .*\(not for ebpf: /m],
  ['a case of the matrix', /^\| `matrix\/nodePort\/Local\/ready-remote-only\/` ipv4, ipv6 \|/m],
  ['a covered feature', /^\| 14 \| ipMode \(KEP-1860\) \| `scenario\/load-balancer-ip-mode\/\*` \|$/m],
  ['a feature that packets cannot show', /^\| 40 \| hostPort \| none: /m],
  [
    'a rule, with what it decides',
    /^\d+\. KEP-1669: where no endpoint in reach is ready.* \(`terminating-fallback`, [1-9]\d* cases\)$/m,
  ],
])('the page has %s', (_, expected) => {
  expect(page).toMatch(expected);
});
