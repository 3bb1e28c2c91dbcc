import { expect, test } from 'vitest';
import type { CaseResult } from '../model/report-file.ts';
import { columnsOf } from '../report/columns.ts';
import { aCase, aCheck, aFailedCheck, aReport, aRun } from '../testing/report-builders.ts';
import { conformanceReport, type ConformanceReport } from './conformance-report.ts';

const publication = {
  implementation: { organization: 'o', project: 'p', url: 'https://p.example', version: '1', contact: [] },
  mode: 'nftables',
  kubernetesVersion: 'lab',
  reproduce: 'run it',
  toolVersion: '0.1.0',
};

/** Report of rounds with these cases each. */
function reportOf(...rounds: readonly (readonly CaseResult[])[]): ConformanceReport {
  const runs = rounds.map((cases, index) => aRun({ cases, round: index + 1 }));
  const [column] = columnsOf(aReport(...runs));
  if (column === undefined) throw new Error('no column');
  return conformanceReport(column, publication);
}

const core = (name: string, over: Partial<CaseResult> = {}): CaseResult =>
  aCase({ id: `scenario/${name}/ipv4`, ...over });
const failed = { status: 'failed', checks: [aFailedCheck()] } as const;

test('a profile whose required cases all passed is a success, even if extended and informative ones failed', () => {
  const { profiles, differences } = reportOf([
    core('cluster-ip'),
    core('hairpin', failed),
    core('unknown-port', failed),
  ]);
  expect(profiles).toMatchObject([
    {
      name: 'Core',
      required: { result: 'success', statistics: { passed: 1, failed: 0, skipped: 0, inconclusive: 0 } },
      extended: { result: 'failure', failed: [{ case: 'scenario/hairpin/ipv4' }] },
    },
  ]);
  expect(differences?.map((one) => one.case)).toEqual(['scenario/unknown-port/ipv4']);
});

test('a required case that failed in one round failed, with what was seen', () => {
  const { profiles, rounds } = reportOf([core('sctp')], [core('sctp', failed)], [core('sctp')]);
  expect(rounds).toBe(3);
  expect(profiles[0]?.required).toMatchObject({
    result: 'failure',
    failed: [
      { case: 'scenario/sctp/ipv4', because: expect.stringMatching(/: expected forward to .*, saw drop$/) as unknown },
    ],
  });
});

test.each<readonly [string, Partial<CaseResult>, 'skipped' | 'inconclusive', string]>([
  ['was skipped', { status: 'skipped', because: 'no SCTP here', checks: [] }, 'skipped', 'no SCTP here'],
  ['ended with an error', { status: 'error', because: 'the lab failed', checks: [] }, 'inconclusive', 'the lab failed'],
  [
    'has a check without a verdict',
    { inconclusive: [{ id: 'line 3', what: 'a to b', because: 'rate limited' }] },
    'inconclusive',
    'line 3: a to b: rate limited',
  ],
])('a profile with a required case that %s is partial', (_, over, status, because) => {
  const [profile] = reportOf([core('cluster-ip'), core('sctp', over)]).profiles;
  expect(profile?.required).toMatchObject({
    result: 'partial',
    statistics: { passed: 1, failed: 0, [status]: 1 },
    [status]: [{ case: 'scenario/sctp/ipv4', because }],
  });
});

test('a profile without a case that ran has the result none', () => {
  const skipped = core('sctp', { status: 'skipped', because: 'no', checks: [] });
  expect(reportOf([skipped]).profiles[0]?.required?.result).toBe('none');
});

test('a wrong check that the API leaves open is a difference, and the case passed', () => {
  const id = 'matrix/nodePort/Local/ready-remote-only/ipv4';
  const checks = [aCheck({ id: 'outside/tcp' }), aFailedCheck({ id: 'pod/tcp' })];
  const open = reportOf([aCase({ id, status: 'failed', checks })]);
  expect(open.profiles[0]).toMatchObject({ name: 'LoadBalancer', required: { result: 'success' } });
  expect(open.differences).toMatchObject([{ case: id, because: expect.stringMatching(/^pod\/tcp: /) as unknown }]);
  const both = [aFailedCheck({ id: 'outside/tcp' }), aFailedCheck({ id: 'pod/tcp' })];
  expect(reportOf([aCase({ id, status: 'failed', checks: both })]).profiles[0]?.required?.result).toBe('failure');
});

test('of many wrong checks three are shown; a case of no profile is left out', () => {
  const checks = Array.from({ length: 5 }, (_, index) => aFailedCheck({ id: `line ${index}` }));
  const { profiles } = reportOf([core('sctp', { status: 'failed', checks }), core('cart-drains', failed)]);
  expect(profiles).toHaveLength(1);
  expect(profiles[0]?.required?.failed?.[0]?.because).toMatch(/^line 0: .*line 1: .*line 2: .*; and 2 more$/);
});
