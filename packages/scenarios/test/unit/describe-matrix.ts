import type { IpFamily } from '@switchyard/core';
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

const { signal } = new AbortController();

/** Tests backends with the matrix and all orders in which endpoints end, in some IP families. */
export function describeMatrix(
  subjects: readonly (readonly [string, BackendHarness])[],
  families: readonly IpFamily[],
): void {
  describe.each(subjects)('the rendering: what %s renders does what the rules of the matrix say', (_, harness) => {
    const { dataplane } = harness;
    const all = [
      ...matrixScenarios(dataplane).map(({ scenario }) => scenario),
      ...endingScenarios(dataplane, endingOrders),
    ].filter(({ ipFamily }) => families.includes(ipFamily));
    const rows = all.map((scenario) => [`${scenario.id} ${scenario.ipFamily}`, scenario] as const);

    test.each(rows)('%s', async (_title, scenario) => {
      const rendered = await runOnBackend(scenario, harness, {}, signal);
      expect(disagreementText(compareRuns(scenario, [runOnTable(scenario), rendered]))).toBe('');
    });
  });
}
