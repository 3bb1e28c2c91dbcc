import { expect, test } from 'vitest';
import { type EndedTest, UpstreamProgress } from './progress.ts';

const names = [
  '[sig-network] Services should be ready',
  '[sig-network] Services should be ready [Slow]',
  '[sig-network] Conntrack should drop',
  '[sig-network] Traffic Distribution should prefer',
];

function follow(text: string, size = text.length): { readonly ended: readonly EndedTest[]; readonly text: string } {
  const ended: EndedTest[] = [];
  const progress = new UpstreamProgress(names, (one) => ended.push(one));
  for (let from = 0; from < text.length; from += size) progress.take(text.slice(from, from + size));
  return { ended, text: progress.text };
}

const delimiter = '------------------------------\n';
const place = '/src/test/e2e/network/service.go:74\n';
const sideBySide = `Will run 4 of 7906 specs
Running in parallel across 4 processes
SSSSSSSSSSSS
${delimiter}• [12.345 seconds]
${names[1]} [sig-network, Slow]
${place}
  Timeline >>
  STEP: ${names[3]}
  << Timeline
${delimiter}SSSSSSSSSSSSSSSS
${delimiter}• [FAILED] [3.100 seconds]
${names[2]} [sig-network]
${place}${delimiter}S [SKIPPED] [0.040 seconds]
${names[3]} [sig-network]
${place}${delimiter}`;

test.each([sideBySide.length, 1, 7])(
  'tests that run side by side are counted by their results, in pieces of %i characters',
  (size) => {
    expect(follow(sideBySide, size)).toEqual({
      ended: [
        { name: names[1], how: 'passed' },
        { name: names[2], how: 'failed' },
        { name: names[3], how: 'skipped' },
      ],
      text: `3 of 4 done, 1 failed, 1 skipped themselves; last: ${names[3]}`,
    });
  },
);

test('tests that run one by one are named before their results', () => {
  const running = `${delimiter}${names[0]} [sig-network]\n${place}`;
  expect(follow(running)).toEqual({ ended: [], text: `0 of 4 done, 0 failed; running: ${names[0]}` });
  expect(follow(`${running}• [PANICKED] [2.000 seconds]\n${names[0]} [sig-network]\n${delimiter}`)).toEqual({
    ended: [{ name: names[0], how: 'panicked' }],
    text: `1 of 4 done, 1 failed; last: ${names[0]}`,
  });
});

test('what is no result changes nothing', () => {
  const noise = `SSSSS\nI1123 06:51:42 e2e.go:109] Starting\n[SynchronizedBeforeSuite] PASSED [0.000 seconds]\n• [odd]\n`;
  expect(follow(noise)).toEqual({ ended: [], text: '0 of 4 done, 0 failed' });
});

test('a test that passed at its second attempt has passed', () => {
  const flaky = `${delimiter}↺ [FLAKEY TEST - TOOK 2 ATTEMPTS TO PASS] [9.1 seconds]\n${names[0]} [sig-network]\n`;
  expect(follow(flaky).ended).toEqual([{ name: names[0], how: 'passed' }]);
});
