import { beforeAll, describe, expect, test } from 'vitest';
import { catalogue } from '../../src/cases/catalogue.ts';
import { ownProxy } from '../../src/lab/proxy-program.ts';
import { runLabs } from '../../src/lab/run-labs.ts';
import type { ConformanceCase } from '../../src/model/case.ts';
import type { CaseResult, CheckResult } from '../../src/model/report-file.ts';

// Nodes limit their ICMP errors: six at once to each receiver, then one a second. More rejects than that are looked
// at together here, and drops beside them.

type FlowStep = Extract<
  Extract<ConformanceCase, { readonly kind: 'scenario' }>['scenario']['steps'][number],
  { readonly kind: 'flow' }
>;

/** The steps of a case that send from outside by UDP. */
function outsideByUdp(one: ConformanceCase): readonly FlowStep[] {
  if (one.kind !== 'scenario') return [];
  return one.scenario.steps.filter(
    (step): step is FlowStep => step.kind === 'flow' && step.flow.from === 'outside' && step.flow.protocol === 'UDP',
  );
}

const cases = catalogue({ dataplane: 'nftables', cell: 'ipv4' }).filter(
  (one) =>
    /^matrix\/(nodePort|externalIP|loadBalancerIP)\//.test(one.id) &&
    outsideByUdp(one).some(({ flow }) => flow.expect.kind === 'reject' || flow.expect.kind === 'drop'),
);
const count = (kind: 'reject' | 'drop'): number =>
  cases.flatMap(outsideByUdp).filter(({ flow }) => flow.expect.kind === kind).length;

let results: readonly CaseResult[] = [];

beforeAll(async () => {
  const run = { program: await ownProxy('nftables'), cell: 'ipv4', cases, labs: 1, hasIcmpLimits: true } as const;
  const options = { labName: 'icmp', jobs: 1, seed: 1, rounds: 1, isFailFast: false } as const;
  const reports = await runLabs({ ...options, runs: [run], onProgress: () => undefined }, AbortSignal.timeout(240_000));
  results = reports.flatMap((report) => report.cases);
});

/** Observations of UDP from outside that match this expectation. */
function checks(expected: string): readonly CheckResult[] {
  return results.flatMap((one) => one.checks).filter((one) => one.id === 'outside/udp' && one.expected === expected);
}

describe('more UDP rejects than the node has ICMP errors for', () => {
  test('are many', () => {
    expect(count('reject')).toBeGreaterThan(6);
    expect(count('drop')).toBeGreaterThan(3);
  });

  test('are all seen as rejects: none is taken for a drop, and none is left undecided', () => {
    expect(results.flatMap(({ id, status }) => (status === 'passed' ? [] : [`${id} ${status}`]))).toEqual([]);
    expect(results.flatMap(({ inconclusive = [] }) => inconclusive)).toEqual([]);
    expect(checks('reject').map(({ observed }) => observed)).toEqual(
      Array.from({ length: count('reject') }, () => 'reject'),
    );
  });

  test('needed more attempts than a node without limits', () => {
    const attempts = checks('reject').map(({ because }) => Number.parseInt(because[0] ?? '', 10));
    expect(attempts.some((number) => number > 2)).toBe(true);
  });

  test('leave drops beside them no doubt', () => {
    expect(checks('drop').map(({ because }) => because)).toEqual(
      Array.from({ length: count('drop') }, () => ['3 attempts showed this']),
    );
  });
});
