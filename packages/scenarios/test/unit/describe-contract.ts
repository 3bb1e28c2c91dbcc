import { describe, expect, test } from 'vitest';
import { allScenarios, backendContract, type BackendHarness } from '../../src/index.ts';

const { signal } = new AbortController();

/** Tests each clause of the backend contract with all scenarios. */
export function describeContract(harnesses: readonly BackendHarness[]): void {
  describe.each(harnesses)('contract: a backend ($name) …', (harness) => {
    const scenarios = allScenarios(harness.dataplane).filter(({ runs }) => runs.kinds.includes('rendering'));
    test.each(backendContract)(
      '$promise',
      async ({ faults }) => {
        const broken: string[] = [];
        for (const scenario of scenarios) {
          const found = await faults({ harness, scenario }, signal);
          broken.push(...found.map((fault) => `${scenario.id} ${scenario.ipFamily}: ${fault}`));
        }
        expect(broken).toEqual([]);
      },
      60_000,
    );
  });
}
