import { describe, expect, test } from 'vitest';
import {
  type BackendHarness,
  compareRuns,
  disagreementText,
  endingOrders,
  endingScenarios,
  matrixScenarios,
  runOnBackend,
  runOnTable,
} from '../../src/index.ts';
import { ebpfHarness } from './ebpf-harness.ts';
import { iptablesHarness } from './iptables-harness.ts';
import { nftablesHarness } from './nftables-harness.ts';

const { signal } = new AbortController();

const subjects: readonly (readonly [string, BackendHarness])[] = [
  ['nftables', nftablesHarness],
  ['iptables-nft', iptablesHarness({ variant: 'nft', hasAccounting: true })],
  ['iptables-legacy', iptablesHarness({ variant: 'legacy', hasAccounting: true })],
  ['ebpf-tc', ebpfHarness('tc')],
  ['ebpf-nftables', ebpfHarness('nftables')],
];

describe.each(subjects)('the rendering: what %s renders does what the rules of the matrix say', (_, harness) => {
  const { dataplane } = harness;
  const all = [
    ...matrixScenarios(dataplane).map(({ scenario }) => scenario),
    ...endingScenarios(dataplane, endingOrders),
  ];
  const rows = all.map((scenario) => [`${scenario.id} ${scenario.ipFamily}`, scenario] as const);

  test.each(rows)('%s', async (_title, scenario) => {
    const rendered = await runOnBackend(scenario, harness, {}, signal);
    expect(disagreementText(compareRuns(scenario, [runOnTable(scenario), rendered]))).toBe('');
  });
});
