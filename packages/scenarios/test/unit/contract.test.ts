import { describe, expect, test } from 'vitest';
import { allScenarios, backendContract } from '../../src/index.ts';
import { nftablesHarness } from './nftables-harness.ts';

const { signal } = new AbortController();
const scenarios = allScenarios().filter(({ altitudes }) => altitudes.run.includes('rendered'));

describe.each([nftablesHarness])('contract: a backend ($name) …', (harness) => {
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
