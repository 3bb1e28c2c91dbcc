import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import { formatSummary, readVitestReport } from './results.ts';

function reportOf(content: string): ReturnType<typeof readVitestReport> {
  const folder = mkdtempSync(join(tmpdir(), 'swy-results-'));
  try {
    const path = join(folder, 'report.json');
    writeFileSync(path, content);
    return readVitestReport('unit x', path);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const file = (tests: readonly object[], status = 'passed'): unknown => ({
  name: 'x.test.ts',
  status,
  message: 'import failed',
  assertionResults: tests,
});

test('counts passed, failed and skipped tests', () => {
  const tests = [
    { fullName: 'a', status: 'passed' },
    { fullName: 'b', status: 'failed' },
    { fullName: 'c', status: 'pending' },
    { fullName: 'd', status: 'skipped', meta: { because: 'not for ebpf' } },
  ];
  const result = reportOf(JSON.stringify({ success: false, testResults: [file(tests, 'failed')] }));
  assert.deepEqual(result, {
    name: 'unit x',
    passed: 1,
    failed: 1,
    skipped: [
      { name: 'c', reason: undefined },
      { name: 'd', reason: 'not for ebpf' },
    ],
    failures: [{ name: 'b', said: '', file: 'x.test.ts' }],
  });
});

test('a report that is missing, broken, empty or failed outside its tests is a failure', () => {
  assert.equal(readVitestReport('x', '/nonexistent').failed, 1);
  assert.equal(reportOf('{').failed, 1);
  assert.equal(reportOf(JSON.stringify({ success: true, testResults: [] })).failed, 1);
  assert.equal(reportOf(JSON.stringify({ success: false, testResults: [file([], 'failed')] })).failed, 1);
  const passedOnly = [file([{ fullName: 'a', status: 'passed' }])];
  assert.equal(reportOf(JSON.stringify({ success: false, testResults: passedOnly })).failed, 1);
});

test('a failure is shown with the beginning of its message', () => {
  const lines = Array.from({ length: 40 }, (_, index) => `line ${index}`);
  const message = `\u001B[31mexpected 1\u001B[39m\n\n${lines.join('\n')}`;
  const tests = [{ fullName: 'b', status: 'failed', failureMessages: [message] }];
  const [failure] = reportOf(JSON.stringify({ success: false, testResults: [file(tests, 'failed')] })).failures;
  const told = failure?.said?.split('\n') ?? [];
  assert.deepEqual(told.slice(0, 2), ['    expected 1', '    line 0']);
  assert.equal(told.length, 24);
});

test('the closing line adds up all suites', () => {
  const result = { name: 'x', passed: 2, failed: 1, skipped: [{ name: 's' }], failures: [{ name: 'f' }], seconds: 1 };
  const lines = formatSummary([result, { ...result, name: 'y' }], 130.7)
    .trimEnd()
    .split('\n');
  assert.deepEqual(lines.slice(-2), ['2 min 10 s', '4 passed, 2 failed, 2 skipped']);
  assert.ok(lines.some((line) => line.startsWith('FAILED   y: f')));
});

test('many skips with one reason are one line of the summary', () => {
  const late = Array.from({ length: 21 }, (_, index) => ({ name: `case ${index}`, reason: 'not run: too late' }));
  const flaky = { name: 'b', reason: 'flaky', said: '    expected 1' };
  const skipped = [{ name: 'a', reason: 'no kernel' }, ...late, flaky];
  const result = { name: 'x', passed: 2, failed: 0, skipped, failures: [], seconds: 1 };
  const lines = formatSummary([result], 1).split('\n');
  assert.deepEqual(
    lines.filter((line) => line.startsWith('skipped')),
    [
      'skipped  x: a [no kernel]',
      'skipped  x: 21 tests, the first: case 0 [not run: too late]',
      'skipped  x: b [flaky]',
    ],
  );
  assert.ok(lines.includes('    expected 1'));
  assert.ok(lines.includes('2 passed, 0 failed, 23 skipped'));
});
