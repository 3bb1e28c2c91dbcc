import { expect, test } from 'vitest';
import { aCase, aFailedCheck, aReport, aRollout, aRun, aSkip } from '../testing/report-builders.ts';
import { readReport, writeReport } from './read-report.ts';

const undecided = aCase({ id: 'd', inconclusive: [{ id: 'outside/udp', what: 'x', because: 'rate limited: 7' }] });
const report = aReport(
  aRun({
    cases: [
      aCase({ rollouts: [aRollout()] }),
      aCase({ id: 'b', checks: [aFailedCheck()] }),
      aSkip('c', 'why'),
      undecided,
    ],
  }),
  aRun({ proxy: 'iptables-nft', cell: 'ipv6', target: 'cluster' }),
);

test('what was written is read again', () => {
  expect(readReport('a.json', writeReport(report))).toEqual(report);
});

test('fields that a newer version may have are let through', () => {
  const text = writeReport(report).replace('"version"', '"host": "a", "version"');
  expect(readReport('a.json', text)).toEqual(report);
});

test.each([
  { what: 'no JSON', text: '{"schema":', message: /^reading a\.json: not JSON \(.*a run that was killed leaves none$/ },
  { what: 'null', text: 'null', message: /^reading a\.json: the file has no "schema", and this tool reads/ },
  { what: 'a list', text: '[]', message: /has no "schema"/ },
  {
    what: 'another schema',
    text: '{"schema":"switchyard-conformance/3"}',
    message: /has the schema "switchyard-conformance\/3", and this tool reads switchyard-conformance\/2/,
  },
  {
    what: 'a wrong status',
    text: writeReport(report).replace('"passed"', '"green"'),
    message: /not a report of switchyard-conformance\/2:\n {2}runs\.0\.cases\.0\.status: .*"green"$/,
  },
  {
    what: 'no time',
    text: writeReport(report).replace('2026-01-31T12:00:00.000Z', 'yesterday'),
    message: /runs\.0\.startedAt: must be a time such as/,
  },
  {
    what: 'many faults',
    text: JSON.stringify({ schema: report.schema, version: '0', runs: Array.from({ length: 9 }, () => ({})) }),
    message: /\n {2}and \d+ more$/,
  },
])('$what is refused in words', ({ text, message }) => {
  expect(() => readReport('a.json', text)).toThrow(message);
});
