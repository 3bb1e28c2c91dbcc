import { seededRandom } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import {
  type BackendHarness,
  compareRuns,
  disagreementText,
  dataplaneNamed,
  runOnBackend,
  runOnTable,
  type Scenario,
} from '../../src/index.ts';
import { ebpfHarness } from './ebpf-harness.ts';
import { ebpfTcHarness, iptablesNftHarness } from './harnesses.ts';
import { iptablesHarness } from './iptables-harness.ts';
import { nftablesHarness } from './nftables-harness.ts';
import { quietRun } from './quiet-run.ts';
import { type Families, renderedScenarios } from './rendered-scenarios.ts';

const { signal } = new AbortController();

/** A scenario with the title of its test. */
export function titled(scenario: Scenario): { readonly title: string; readonly scenario: Scenario } {
  return { title: `${scenario.id} ${scenario.ipFamily}: ${scenario.name}`, scenario };
}

/** Tests that failing transactions leave no trace. */
export function describeFaults(harnesses: readonly BackendHarness[], families: Families): void {
  describe.each(harnesses)('the rendering: $name, one transaction in ten fails', (harness) => {
    test.for(renderedScenarios(harness.dataplane, families).map(titled))('$title', async ({ scenario }) => {
      const random = seededRandom(`${scenario.id} ${scenario.ipFamily}`);
      const quiet = await quietRun(scenario, harness);
      const rough = await runOnBackend(scenario, harness, { failureRate: 0.1, random }, signal);
      expect(disagreementText(compareRuns(scenario, [runOnTable(scenario), rough]))).toBe('');
      expect(rough.dumps, 'failures leave no trace').toEqual(quiet.dumps);
    });
  });
}

/** Tests that variants of a backend render what its first variant renders. */
export function describeVariants(families: Families): void {
  describe('both variants of iptables', () => {
    const legacy = iptablesHarness({ variant: 'legacy', hasAccounting: true });

    test.for(renderedScenarios(dataplaneNamed('iptables'), families).map(titled))(
      'get the same rules: $title',
      async ({ scenario }) => {
        expect(await quietRun(scenario, legacy)).toEqual(await quietRun(scenario, iptablesNftHarness));
      },
    );
  });

  describe('eBPF with rules of nftables for what comes from outside', () => {
    const both = ebpfHarness('nftables');
    // Whole Services are rules here, so what the fake of nftables cannot hold is left out.
    const inNftables = new Set(renderedScenarios(dataplaneNamed('nftables'), families).map(({ id }) => id));
    const scenarios = renderedScenarios(dataplaneNamed('ebpf'), families).filter(({ id }) => inNftables.has(id));

    test.for(scenarios.map(titled))(
      'does what the scenario says, with the maps of eBPF and the rules of nftables: $title',
      async ({ scenario }) => {
        const result = await quietRun(scenario, both);
        expect(disagreementText(compareRuns(scenario, [runOnTable(scenario), result]))).toBe('');
        const programs = await quietRun(scenario, ebpfTcHarness);
        const rules = await quietRun(scenario, nftablesHarness);
        expect(result.dumps.map(linesOfMaps)).toEqual(programs.dumps.map(linesOfMaps));
        expect(result.dumps.map(linesOfRules)).toEqual(rules.dumps.map(linesOfRules));
      },
    );
  });
}

/** Contents of maps, which no nftables rule states in these words. */
const ofMaps = /^(?:endpoint|guard|source range|affinity|frontend .*: pod )/;

function linesOfMaps(dump: string): readonly string[] {
  return dump.split('\n').filter((line) => ofMaps.test(line));
}

function linesOfRules(dump: string): readonly string[] {
  return dump.split('\n').filter((line) => line !== '' && !ofMaps.test(line));
}
