import { expect, test } from 'vitest';
import type { CaseResult, CheckResult } from '../model/report-file.ts';
import { aCase, aCheck, aFailedCheck, anError, aReport, aRun, aSkip } from '../testing/report-builders.ts';
import { pickSide, splitSide, diffRuns, diffStatus } from './diff.ts';
import { diffLine, diffText, diffJson } from './diff-text.ts';

const left = (...rounds: readonly (readonly CaseResult[])[]) =>
  aReport(...rounds.map((cases, index) => aRun({ round: index + 1, cases })));
const right = (...rounds: readonly (readonly CaseResult[])[]) =>
  aReport(...rounds.map((cases, index) => aRun({ proxy: 'iptables-nft', round: index + 1, cases })));

function diffOf(a: readonly (readonly CaseResult[])[], b: readonly (readonly CaseResult[])[]) {
  return diffRuns(pickSide('a.json', left(...a), undefined), pickSide('b.json', right(...b), undefined));
}

const seen = (observed: string, over: Partial<CheckResult> = {}): readonly CaseResult[] => [
  aCase({ checks: [aCheck({ expected: observed, observed, ...over })] }),
];
const limit = (observed: string, isAsExpected = true): readonly CaseResult[] =>
  seen(observed, { expected: 'under 0.61 s', isAsExpected });

type Rounds = readonly (readonly CaseResult[])[];
test.each<{ what: string; a: Rounds; b: Rounds; is: 'equal' | 'different' | 'unstable' | 'one-sided' }>([
  { what: 'the same observation', a: [seen('drop')], b: [seen('drop')], is: 'equal' },
  {
    what: 'the same failure',
    a: [[aCase({ checks: [aFailedCheck()] })]],
    b: [[aCase({ checks: [aFailedCheck()] })]],
    is: 'equal',
  },
  { what: 'another observation, both as their mode must', a: [seen('reject')], b: [seen('pass')], is: 'different' },
  { what: 'another endpoint', a: [seen('forward to 10.244.1.5')], b: [seen('forward to 10.244.1.6')], is: 'different' },
  { what: 'a limit that both keep', a: [limit('0.44 s')], b: [limit('0.12 s')], is: 'equal' },
  { what: 'a limit that one breaks', a: [limit('0.44 s')], b: [limit('0.93 s', false)], is: 'different' },
  { what: 'a limit that both break', a: [limit('0.94 s', false)], b: [limit('0.93 s', false)], is: 'equal' },
  {
    what: 'a check that one lacks',
    a: [seen('drop')],
    b: [[aCase({ checks: [aCheck({ id: 'other' })] })]],
    is: 'different',
  },
  {
    what: 'a check that one could not decide',
    a: [seen('drop')],
    b: [
      [
        aCase({
          checks: [],
          status: 'passed',
          inconclusive: [{ id: 'outside/tcp', what: 'outside', because: 'rate limited: 7' }],
        }),
      ],
    ],
    is: 'equal',
  },
  { what: 'rounds that differ in one', a: [seen('drop'), seen('reject')], b: [seen('drop')], is: 'unstable' },
  {
    what: 'rounds that differ in both',
    a: [seen('drop'), seen('reject')],
    b: [seen('reject'), seen('drop')],
    is: 'unstable',
  },
  {
    what: 'a limit that is kept by less and less',
    a: [limit('0.4 s'), limit('0.6 s')],
    b: [limit('0.1 s')],
    is: 'equal',
  },
  {
    what: 'a case that is skipped in one',
    a: [seen('drop')],
    b: [[aSkip('scenario/etp-local/ipv4', 'no SCTP')]],
    is: 'one-sided',
  },
  {
    what: 'a case whose lab failed in one',
    a: [[anError('scenario/etp-local/ipv4', 'x')]],
    b: [seen('drop')],
    is: 'one-sided',
  },
  {
    what: 'a case that one does not have',
    a: [seen('drop')],
    b: [[aCase({ id: 'else' }), ...seen('drop')]],
    is: 'one-sided',
  },
  { what: 'a case that is skipped in both', a: [[aSkip('a', 'x')]], b: [[aSkip('a', 'y')]], is: 'equal' },
])('$what: $is', ({ a, b, is }) => {
  const diff = diffOf(a, b);
  const { differences, unstable, oneSided } = diff;
  const found = [
    ...(differences.length > 0 ? ['different'] : []),
    ...(unstable.length > 0 ? ['unstable'] : []),
    ...(oneSided.length > 0 ? ['one-sided'] : []),
  ];
  expect(found).toEqual(is === 'equal' ? [] : [is]);
  expect(diffStatus(diff)).toBe(is === 'different' || is === 'one-sided' ? 1 : 0);
});

test('all checks of shared cases are counted once', () => {
  const both = [aCase({ id: 'a' }), aCase({ id: 'b', checks: [aCheck(), aCheck({ id: '2' })] })];
  const { equalChecks, sharedCases } = diffOf([both, both], [both]);
  expect({ equalChecks, sharedCases }).toEqual({ equalChecks: 3, sharedCases: 2 });
});

const some = diffOf(
  [
    [...seen('reject'), aCase({ id: 'flaky' }), aCase({ id: 'left' })],
    [aCase({ id: 'flaky', checks: [aFailedCheck()] })],
  ],
  [
    [
      ...seen('pass', { isAsExpected: false, expected: 'reject' }),
      aCase({ id: 'flaky' }),
      aSkip('left', 'not for iptables'),
    ],
  ],
);

test('as text: what differs by case, columns are the proxies', () => {
  expect(diffText(some, { colours: false })).toBe(`observed differently                nftables  iptables-nft
  scenario/etp-local/ipv4
    outside to 198.51.100.7:80/TCP  reject    pass !

unstable: varies between rounds of the same proxy  nftables                        iptables-nft
  flaky
    outside to 198.51.100.7:80/TCP                 forward to 10.244.1.5 | drop !  forward to 10.244.1.5

only nftables ran these (iptables-nft: skipped: not for iptables)
  left

0 checks of 2 cases are equal, 1 differ in 1 case, 1 unstable, 1 case in one only
(! is not as expected of this proxy's mode)
`);
});

test('as JSON: the same, with a schema of its own', () => {
  const json = JSON.parse(diffJson(some)) as Record<string, unknown>;
  expect(json).toMatchObject({
    schema: 'switchyard-conformance-diff/1',
    a: { file: 'a.json', proxy: { name: 'nftables' }, cell: 'dual', rounds: 2 },
    differences: [{ caseId: 'scenario/etp-local/ipv4', checkId: 'outside/tcp', a: { observed: ['reject'] } }],
    oneSided: [{ caseId: 'left', in: 'a' }],
  });
});

test('nothing differs: one line', () => {
  const diff = diffOf([seen('drop')], [seen('drop')]);
  expect(diffText(diff, { colours: false })).toBe(`${diffLine(diff)}\n`);
  expect(diffLine(diff)).toBe('1 checks of 1 cases are equal, 0 differ');
});

test.each([
  { argument: 'a.json', file: 'a.json', choice: undefined },
  { argument: 'a.json#iptables-nft', file: 'a.json', choice: 'iptables-nft' },
  { argument: 'run#3/a.json#ebpf-tc/ipv6', file: 'run#3/a.json', choice: 'ebpf-tc/ipv6' },
])('$argument is $choice of $file', ({ argument, file, choice }) => {
  expect(splitSide(argument)).toEqual({ file, choice });
});

const several = aReport(aRun(), aRun({ cell: 'ipv6' }), aRun({ proxy: 'ebpf-tc' }));

test.each([
  { choice: 'ebpf-tc', key: 'ebpf-tc/dual' },
  { choice: 'nftables/ipv6', key: 'nftables/ipv6' },
])('$choice picks $key', ({ choice, key }) => {
  expect(pickSide('a.json', several, choice).column.key).toBe(key);
});

test.each([
  {
    choice: undefined,
    message: /^comparing a\.json: it holds runs of 3 proxies or cells; give one of\n {2}a\.json#nftables\/dual\n/,
  },
  { choice: 'nftables', message: /it holds runs of 2 proxies or cells called 'nftables'; give one of\n/ },
  { choice: 'ipvs', message: /it holds no run of 'ipvs'; give one of\n {2}a\.json#nftables\/dual\n/ },
])('$choice does not pick one, and the choices are listed', ({ choice, message }) => {
  expect(() => pickSide('a.json', several, choice)).toThrow(message);
});
