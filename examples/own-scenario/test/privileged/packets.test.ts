import { fileURLToPath } from 'node:url';
import { exitStatusOf, runScenario, textSummary } from '@switchyard/conformance';
import { expect, test } from 'vitest';

const scenario = fileURLToPath(new URL('../../cart-drains.yaml', import.meta.url));

test('packets through the nftables mode do what the scenario says', async ({ signal }) => {
  const report = await runScenario({ scenario, proxy: { backend: 'nftables' }, labName: 'own' }, signal);
  expect(exitStatusOf(report), textSummary(report, { colours: false, detailed: 9 })).toBe(0);
  expect(report.runs.flatMap((run) => run.cases.map(({ id, status }) => `${id}: ${status}`))).toEqual([
    'scenario/cart-drains/ipv4: passed',
    'scenario/cart-drains/ipv6: passed',
  ]);
});
