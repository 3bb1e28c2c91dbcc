import { expect, test } from 'vitest';
import type { CaseResult } from '../model/report-file.ts';
import { aCase, aCheck, aFailedCheck, anError, aReport, aRun, aSkip } from '../testing/report-builders.ts';
import { cellMarks, cellStatus, matrixOf } from './matrix.ts';

const failed = aCase({ checks: [aFailedCheck()] });
const skipped = aSkip(aCase().id, 'why');

test.each<{ rounds: readonly CaseResult[]; status: string; marks: string }>([
  { rounds: [aCase()], status: 'passed', marks: 'p' },
  { rounds: [failed], status: 'failed', marks: 'f' },
  { rounds: [failed, failed], status: 'failed', marks: 'f' },
  { rounds: [aCase(), failed], status: 'flaky', marks: 'pf~' },
  { rounds: [skipped], status: 'skipped', marks: 's' },
  { rounds: [anError(aCase().id, 'x')], status: 'error', marks: 'e' },
])('$marks: $status', ({ rounds, status, marks }) => {
  const cell = matrixOf(aReport(...rounds.map((one, index) => aRun({ round: index + 1, cases: [one] })))).groups[0]
    ?.rows[0]?.cells[0];
  expect(cell && [cellStatus(cell), cellMarks(cell)]).toEqual([status, marks]);
});

test('a case that a proxy does not have is an empty cell', () => {
  const { groups, columns } = matrixOf(aReport(aRun(), aRun({ proxy: 'ebpf-tc', cases: [] })));
  expect(columns.map(({ key }) => key)).toEqual(['nftables/dual', 'ebpf-tc/dual']);
  expect(groups[0]?.rows[0]?.cells.map(cellStatus)).toEqual(['passed', 'none']);
});

test.each([
  { id: 'matrix/nodePort/Local/none/ipv4', tags: ['matrix'], group: 'matrix: nodePort' },
  { id: 'scenario/a/ipv4', tags: ['scenario', 'tcp', 'etp-local', 'affinity'], group: 'scenario: session affinity' },
  { id: 'scenario/a/ipv4', tags: ['scenario', 'tcp'], group: 'scenario: cluster IP and more' },
  { id: 'sequence/agent-down/ipv4', tags: ['sequence'], group: 'sequence' },
  { id: 'rollout/deployment/Local/ipv4', tags: ['rollout'], group: 'rollout' },
  { id: 'odd', tags: [], group: 'odd' },
])('$id with $tags stands under $group', ({ id, tags, group }) => {
  const [found] = matrixOf(aReport(aRun({ cases: [aCase({ id, tags })] }))).groups;
  expect([found?.kind, found?.feature].filter(Boolean).join(': ')).toBe(group);
});

test.each([
  { what: 'equal observations', a: aCheck(), b: aCheck(), differs: false },
  { what: 'other endpoints', a: aCheck(), b: aCheck({ expected: 'x', observed: 'x' }), differs: true },
  {
    what: 'measured figures within a limit',
    a: aCheck({ expected: 'under 1 s', observed: '0.1 s' }),
    b: aCheck({ expected: 'under 1 s', observed: '0.2 s' }),
    differs: false,
  },
])('$what of two proxies differ: $differs', ({ a, b, differs }) => {
  const report = aReport(
    aRun({ cases: [aCase({ checks: [a] })] }),
    aRun({ proxy: 'ebpf-tc', cases: [aCase({ checks: [b] })] }),
  );
  const row = matrixOf(report).groups[0]?.rows[0];
  expect(row?.differs).toBe(differs);
});

test('a check that one proxy could not decide makes no difference', () => {
  const inconclusive = [{ id: 'outside/udp', what: 'x', because: 'rate limited: 7' }];
  const report = aReport(
    aRun({ cases: [aCase({ checks: [aCheck(), aCheck({ id: 'outside/udp' })] })] }),
    aRun({ proxy: 'ebpf-tc', cases: [aCase({ checks: [aCheck()], inconclusive })] }),
  );
  expect(matrixOf(report).groups[0]?.rows[0]?.differs).toBe(false);
});

test('two targets in one report have columns of their own', () => {
  const { columns } = matrixOf(aReport(aRun(), aRun({ target: 'cluster' })));
  expect(columns.map(({ key, place }) => `${key} ${place}`)).toEqual([
    'nftables/dual@lab dual, lab',
    'nftables/dual@cluster dual, cluster',
  ]);
});
