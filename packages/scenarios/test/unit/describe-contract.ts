import { describe, expect, test } from 'vitest';
import { backendContract, type BackendHarness } from '../../src/index.ts';
import { type Families, renderedScenarios } from './rendered-scenarios.ts';

const { signal } = new AbortController();

/** Tests each clause of the backend contract with scenarios that have a run on the rendering. */
export function describeContract(harnesses: readonly BackendHarness[], families: Families): void {
  describe.each(harnesses)('contract: a backend ($name) …', (harness) => {
    const scenarios = renderedScenarios(harness.dataplane, families);
    test.each(backendContract)(
      '$promise',
      async ({ faults }) => {
        const broken: string[] = [];
        for (const scenario of scenarios) {
          const found = await faults({ harness, scenario }, signal);
          broken.push(...found.map((fault) => `${scenario.id} ${scenario.ipFamily}: ${fault}`));
        }
        expect(broken).toEqual([]);
        expect(scenarios.length).toBeGreaterThan(0);
      },
      60_000,
    );
  });
}
