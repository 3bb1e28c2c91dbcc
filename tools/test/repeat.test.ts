import assert from 'node:assert/strict';
import { test } from 'vitest';
import { repeatFailed } from './repeat.ts';
import type { SuiteResult } from './results.ts';
import type { Suite } from './suites.ts';

const suite: Suite = { name: 'quiet x', command: ['vitest', 'run'], isRepeated: true };
const passed: SuiteResult = { name: 'quiet x', passed: 5, failed: 0, skipped: [], failures: [], seconds: 2 };
const oneFailed: SuiteResult = {
  ...passed,
  passed: 4,
  failed: 1,
  failures: [{ name: 'a', said: '    expected 1', file: '/x.test.ts' }],
};

const failedIn = (files: number): SuiteResult => ({
  ...oneFailed,
  failed: files,
  failures: Array.from({ length: files }, (_, index) => ({ name: `${index}`, file: `/${index}.test.ts` })),
});

async function repeated(first: SuiteResult, second: SuiteResult, more: Partial<Suite> = {}) {
  const ran: Suite[] = [];
  const [result] = await repeatFailed([{ suite: { ...suite, ...more }, result: first }], async (one) => {
    ran.push(one);
    return second;
  });
  return { result, ran };
}

test('a test that passes alone is skipped as flaky, with its failure', async () => {
  const { result, ran } = await repeated(oneFailed, passed);
  assert.deepEqual(
    ran.map(({ command }) => command),
    [['vitest', 'run', '/x.test.ts']],
  );
  const skipped = [{ name: 'a', reason: 'flaky: failed beside others, passed alone', said: '    expected 1' }];
  assert.deepEqual(result, { ...passed, passed: 4, skipped, seconds: 4 });
});

test('many failures in few files are repeated', async () => {
  const many = Array.from({ length: 30 }, () => oneFailed.failures[0]!);
  assert.equal((await repeated({ ...oneFailed, failures: many }, passed)).ran.length, 1);
  assert.equal((await repeated(failedIn(10), passed)).ran.length, 1);
});

test('a test that fails again, or is skipped then, has failed', async () => {
  assert.deepEqual((await repeated(oneFailed, oneFailed)).result, { ...oneFailed, seconds: 4 });
  const second = { ...passed, passed: 4, skipped: [{ name: 'a', reason: 'no kernel' }] };
  assert.deepEqual((await repeated(oneFailed, second)).result, { ...oneFailed, seconds: 4 });
});

test('unit tests, whole suites and failures in more than ten files are not repeated', async () => {
  for (const { first = oneFailed, more } of [
    { more: { isRepeated: false } },
    { first: { ...oneFailed, failures: [{ name: 'wrote no report' }] } },
    { first: failedIn(11) },
  ]) {
    const { result, ran } = await repeated(first, passed, more);
    assert.deepEqual({ result, ran }, { result: first, ran: [] });
  }
});

test('nothing is repeated beside a failure that stays', async () => {
  const ended = [
    { suite, result: oneFailed },
    {
      suite: { name: 'types', command: ['tsc'] as const },
      result: { ...passed, failed: 1, failures: [{ name: 'tsc' }] },
    },
  ];
  const results = await repeatFailed(ended, () => assert.fail('ran again'));
  assert.deepEqual(
    results,
    ended.map(({ result }) => result),
  );
});
