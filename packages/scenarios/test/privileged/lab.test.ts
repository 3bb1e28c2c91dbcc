import { type IpFamily, ipFamilies } from '@switchyard/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  allScenarios,
  type AltitudeResult,
  compareAltitudes,
  disagreementText,
  runOnBackend,
  runOnTable,
  type Scenario,
} from '../../src/index.ts';
import { runInLab } from '../lab/run-in-lab.ts';
import { Stage } from '../lab/stage.ts';
import { type LabMode, labModes } from '../lab/lab-mode.ts';

const { signal } = new AbortController();
const stages = new Map<IpFamily, Stage>();

beforeAll(async () => {
  const inLab = labModes.flatMap(({ dataplane }) => allScenarios(dataplane)).filter(isInLab);
  const open = async (family: IpFamily): Promise<unknown> =>
    stages.set(family, await Stage.open(`scen${family.slice(-1)}`, inLab, signal));
  await Promise.all(ipFamilies.map(open));
});

afterAll(async () => {
  await Promise.all([...stages.values()].map((stage) => stage[Symbol.asyncDispose]()));
});

/** One after the other in the same labs: to build them takes as long as a third of the scenarios. */
describe.each(labModes)('altitude 3 ($name): real packets do what every scenario says', (mode) => {
  const scenarios = allScenarios(mode.dataplane);
  const runs = scenarios.map((scenario) => ({
    title: `${scenario.id} ${scenario.ipFamily}: ${scenario.name}`,
    scenario,
  }));

  test.for(runs)('$title', async ({ scenario }, { skip }) => {
    skip(!isInLab(scenario), scenario.altitudes.because);
    // Drops are waits: the other family, in a lab of its own, goes on meanwhile.
    for (const twin of scenarios.filter(({ id }) => id === scenario.id)) start(twin, mode).catch(() => undefined);
    const real = await start(scenario, mode);
    const rendered = await runOnBackend(scenario, mode.harness, {}, signal);
    const disagreements = compareAltitudes(scenario, [runOnTable(scenario), rendered, real]);
    expect(disagreementText(disagreements)).toBe('');
  });
});

const started = new Map<Scenario, Promise<AltitudeResult>>();
/** What goes on in each lab; the next scenario waits for it, however it ends. */
const busy = new Map<IpFamily, Promise<unknown>>();

/** The scenario's run in the lab of its family; the same one each time. */
function start(scenario: Scenario, mode: LabMode): Promise<AltitudeResult> {
  const { ipFamily } = scenario;
  const stage = stages.get(ipFamily);
  if (stage === undefined) throw new Error(`there is no lab for ${ipFamily}`);
  const go = (): Promise<AltitudeResult> => runInLab(scenario, { stage, mode }, signal);
  const run = started.get(scenario) ?? (busy.get(ipFamily) ?? Promise.resolve()).then(go, go);
  started.set(scenario, run);
  busy.set(ipFamily, run);
  return run;
}

function isInLab({ altitudes }: Scenario): boolean {
  return altitudes.run.includes('lab');
}
