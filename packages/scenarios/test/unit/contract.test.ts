import { describe, expect, test } from 'vitest';
import { allScenarios, backendContract } from '../../src/index.ts';
import { ebpfHarness } from './ebpf-harness.ts';
import { harnesses } from './harnesses.ts';
import { iptablesHarness } from './iptables-harness.ts';

const { signal } = new AbortController();
/** What is written is the same for both variants of iptables; how it is read back and refused is not. */
const legacy = { ...iptablesHarness({ variant: 'legacy', hasAccounting: false }), name: 'iptables-legacy' };

/** All Services in maps and in rules: more than one part may refuse, and all of them are cleaned up. */
const both = ebpfHarness('nftables');

describe.each([...harnesses, legacy, both])('contract: a backend ($name) …', (harness) => {
  const scenarios = allScenarios(harness.dataplane).filter(({ altitudes }) => altitudes.run.includes('rendered'));
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
