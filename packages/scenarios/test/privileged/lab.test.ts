import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { allScenarios, compareAltitudes, disagreementText, runOnBackend, runOnTable } from '../../src/index.ts';
import { runInLab } from '../lab/run-in-lab.ts';
import { Stage } from '../lab/stage.ts';
import { nftablesHarness } from '../unit/nftables-harness.ts';

const { signal } = new AbortController();
const scenarios = allScenarios();
let stage: Stage;

beforeAll(async () => {
  stage = await Stage.open('scen', scenarios, signal);
});

afterAll(async () => {
  await stage?.[Symbol.asyncDispose]();
});

describe.each(['IPv4', 'IPv6'] as const)('altitude 3: real packets of %s do what every scenario says', (ipFamily) => {
  const runs = scenarios
    .filter((scenario) => scenario.ipFamily === ipFamily)
    .map((scenario) => ({ title: `${scenario.id}: ${scenario.name}`, scenario }));

  test.for(runs)('$title', async ({ scenario }, { skip }) => {
    skip(!scenario.altitudes.run.includes('lab'), scenario.altitudes.because);
    const real = await runInLab(scenario, stage, signal);
    const rendered = await runOnBackend(scenario, nftablesHarness, {}, signal);
    const disagreements = compareAltitudes(scenario, [runOnTable(scenario), rendered, real]);
    expect(disagreementText(disagreements)).toBe('');
  });
});
