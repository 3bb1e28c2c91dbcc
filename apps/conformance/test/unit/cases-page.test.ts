import { expect, test } from 'vitest';
import { casesPage } from './cases-page.ts';

const page = casesPage();

test('docs/reference/conformance-cases.md is fresh; else run: nx run conformance:generate', async () => {
  await expect(page).toMatchFileSnapshot('../../../../docs/reference/conformance-cases.md');
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
