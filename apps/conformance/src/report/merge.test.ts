import { expect, test } from 'vitest';
import { aReport, aRun } from '../testing/report-builders.ts';
import { mergeReports } from './columns.ts';

test('runs of the same proxy and cell become further rounds, others keep theirs', () => {
  const first = aReport(aRun({ round: 1 }), aRun({ round: 2 }), aRun({ proxy: 'ebpf-tc' }));
  const second = aReport(aRun({ round: 1 }), aRun({ round: 2 }), aRun({ cell: 'ipv6' }));
  const { runs } = mergeReports([first, second]);
  expect(runs.map(({ proxy, cell, round }) => `${proxy.name} ${cell} ${round}`)).toEqual([
    'nftables dual 1',
    'nftables dual 2',
    'ebpf-tc dual 1',
    'nftables dual 3',
    'nftables dual 4',
    'nftables ipv6 1',
  ]);
});
