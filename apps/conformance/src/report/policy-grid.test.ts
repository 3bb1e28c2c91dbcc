import { expect, test } from 'vitest';
import type { CaseResult } from '../model/report-file.ts';
import { aCase, aCheck, aFailedCheck, aReport, aRun, aSkip } from '../testing/report-builders.ts';
import { matrixOf } from './matrix.ts';
import { policyGrids } from './html/policy-grid.ts';

const inMatrix = (place: string, ...bad: readonly string[]): CaseResult =>
  aCase({
    id: `matrix/${place}`,
    checks: ['pod', 'outside'].map((source) =>
      (bad.includes(source) ? aFailedCheck : aCheck)({
        id: source,
        what: `${source} to 10.96.0.1:80/TCP`,
        expected: 'drop',
      }),
    ),
  });

test('a grid per frontend: states by policy and source, marks by proxy and family', () => {
  const report = aReport(
    aRun({
      cases: [
        inMatrix('nodePort/Cluster/none/ipv4'),
        inMatrix('nodePort/Local/none/ipv4', 'pod'),
        inMatrix('clusterIP/Cluster/none/ipv4'),
      ],
    }),
    aRun({
      proxy: 'ebpf-tc',
      cases: [aSkip('matrix/nodePort/Local/none/ipv4', 'x'), aCase({ id: 'scenario/a/ipv4' })],
    }),
  );
  const [nodePort, clusterIp, ...more] = policyGrids(matrixOf(report));
  expect(more).toEqual([]);
  expect(clusterIp?.frontend).toBe('clusterIP');
  expect(nodePort).toMatchObject({ policies: ['Cluster', 'Local'], sources: ['pod', 'outside'], families: ['ipv4'] });
  const cells = nodePort?.rows[0]?.cells.map(({ policy, source, marks }) => [
    policy,
    source,
    ...marks.map(({ status }) => status),
  ]);
  expect(cells).toEqual([
    ['Cluster', 'pod', 'passed', 'none'],
    ['Cluster', 'outside', 'passed', 'none'],
    ['Local', 'pod', 'failed', 'skipped'],
    ['Local', 'outside', 'passed', 'skipped'],
  ]);
});

test('rounds that disagree about a source are flaky there alone', () => {
  const report = aReport(
    aRun({ cases: [inMatrix('nodePort/Local/none/ipv4', 'pod')] }),
    aRun({ round: 2, cases: [inMatrix('nodePort/Local/none/ipv4')] }),
  );
  const marks = policyGrids(matrixOf(report))[0]?.rows[0]?.cells.flatMap((cell) =>
    cell.marks.map(({ status }) => status),
  );
  expect(marks).toEqual(['flaky', 'passed']);
});
