import { expect, test } from 'vitest';
import { aReport, aRun } from '../testing/report-builders.ts';
import { leaveForSonobuoy } from './sonobuoy.ts';

async function left(result: Parameters<typeof leaveForSonobuoy>[0]) {
  const files: (readonly [string, string])[] = [];
  await leaveForSonobuoy(result, { folder: '/r', writeText: async (file, text) => void files.push([file, text]) });
  return files;
}

test('JUnit first, then the file that says where it is', async () => {
  expect(await left(aReport(aRun()))).toEqual([
    ['/r/junit.xml', expect.stringMatching(/^<\?xml [^]*<testsuite /)],
    ['/r/done', '/r/junit.xml'],
  ]);
});

test('a run without results leaves the reason', async () => {
  expect(await left('no kubeconfig')).toEqual([
    ['/r/error.txt', 'no kubeconfig\n'],
    ['/r/done', '/r/error.txt'],
  ]);
});
