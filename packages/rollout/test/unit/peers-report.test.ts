import { expect, test } from 'vitest';
import { emptyFigures, grouped, type PeerFigures, peersTable } from '../../bench/peers/peer-figures.ts';
import { markdownText, type PeersReport, terminalText } from '../../bench/peers/report.ts';

const numbers = { burst: 500, churn: 1000, patience: 180_000 };

const measured: PeerFigures = {
  ...emptyFigures('switchyard nftables', 1000),
  coldStarts: [600, 500, 700],
  changes: [2.5, 3.5, 2.61, 40],
  cpuPerChange: [2],
  burstTails: [55],
  burstEach: [20, 30],
  connectService: [20.34],
  rssAfterChanges: 80.2,
};
const late: PeerFigures = { ...emptyFigures('kube-proxy iptables', 1000), late: ['cold start'] };

const report: PeersReport = {
  date: '2026-11-23T07:00:00.000Z',
  machine: '2 cores, kernel 6.18',
  versions: { 'kube-proxy': 'Kubernetes v1.36.2', switchyard: 'abc' },
  apiServer: 'lab',
  options: { rounds: 3, changes: 100, connects: 1500, minSyncPeriod: 10, ...numbers },
  left: ['switchyard ebpf: no cgroup'],
  figures: [late, measured],
};

test('a line per figure, a column per proxy: medians, a limit where a proxy was late, a dash where nothing was measured', () => {
  const table = peersTable(report.figures, numbers);
  const line = (what: string): readonly string[] | undefined => table.find(([name]) => name === what)?.slice(1);
  expect(table[0]).toEqual(['figure', 'kube-proxy iptables', 'switchyard nftables']);
  expect(line('cold start, ms')).toEqual(['> 180 s', '600']);
  expect(line('one endpoint change, p50, ms')).toEqual(['-', '2.6']);
  expect(line('one endpoint change, p99, ms')).toEqual(['-', '40']);
  expect(line('500 at once: own write to own answer, p99, ms')).toEqual(['-', '30']);
  expect(line('memory after 1,000 changes, MB')).toEqual(['-', '80']);
  expect(line('connect to a cluster IP, µs')).toEqual(['-', '20']);
  expect(line('changes measured')).toEqual(['0', '4']);
});

test('the document says machine, date, versions and API server, and every row has all columns', () => {
  const text = markdownText(report);
  expect(text).toMatch(
    /^Measured 2026-11-23 on 2 cores, kernel 6\.18\.\nkube-proxy: Kubernetes v1\.36\.2; switchyard: abc\./,
  );
  expect(text).toContain('The API server of the lab, 3 turns each, `minSyncPeriod` 10 ms.');
  expect(text).toContain(
    '**1,000 Services x 10 endpoints**\n\n| figure | kube-proxy iptables | switchyard nftables |\n',
  );
  const rows = text.split('\n').filter((row) => row.startsWith('|'));
  expect(rows.length).toBe(18);
  for (const row of rows) expect(row.split('|')).toHaveLength(5);
  expect(text).toContain('Not measured: switchyard ebpf: no cgroup');
});

test('both outputs name a proxy that ended by itself', () => {
  const failed = { ...report, figures: [{ ...late, late: [], failure: 'it ended with 1: no such mode' }] };
  const note = 'Failed: kube-proxy iptables at 1,000 Services: it ended with 1: no such mode';
  expect(markdownText(failed)).toContain(note);
  expect(terminalText(failed)).toContain(note);
});

test.each([
  [0, '0'],
  [999, '999'],
  [1000, '1,000'],
  [1_234_567, '1,234,567'],
])('%i is written %s', (value, text) => {
  expect(grouped(value)).toBe(text);
});
