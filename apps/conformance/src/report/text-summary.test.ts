import { expect, test } from 'vitest';
import { aCase, aCheck, aFailedCheck, anError, aReport, aRollout, aRun, aSkip } from '../testing/report-builders.ts';
import { textSummary } from './text-summary.ts';

const plain = { colours: false, detailed: 10 };
const esc = '\u001B';

test('everything, from counts to the last line', () => {
  const report = aReport(
    aRun({
      cases: [
        aCase({ checks: [aCheck(), aFailedCheck({ id: 'node/udp' })] }),
        anError('sequence/agent-down/ipv4', 'the API server ended: exit status 1'),
        aSkip('scenario/sctp/ipv4', 'the environment has no SCTP'),
        aSkip('scenario/sctp/ipv6', 'the environment has no SCTP'),
        aSkip('rollout/daemonset/Local/ipv4', 'the environment has no workloads'),
        aCase({ id: 'rollout/deployment/Local/ipv4', rollouts: [aRollout()] }),
      ],
    }),
    aRun({ proxy: 'iptables-nft', cases: [aCase(), aSkip('scenario/sctp/ipv4', 'the environment has no SCTP')] }),
  );
  expect(textSummary(report, plain)).toBe(`proxy              passed  failed  skipped  errors        time
nftables dual           1       1        3       1  1 min 05 s
iptables-nft dual       1       0        1       0  1 min 05 s

FAILED scenario/etp-local/ipv4  nftables dual
  A Local service is reached where it has an endpoint
  why: API: externalTrafficPolicy "Local"
  check node/udp: outside to 198.51.100.7:80/TCP
    expected  forward to 10.244.1.5
    observed  drop
    because   4 attempts of 4 timed out
    path by Switchyard's table
      frontend 198.51.100.7:80/TCP of default/web
      forward to 10.244.1.5:8080
    path in the kernel
      prerouting: jump services
      services: verdict drop

ERROR sequence/agent-down/ipv4  nftables dual
  the API server ended: exit status 1

skipped
      3  the environment has no SCTP
         scenario/sctp/ipv4, scenario/sctp/ipv6
      1  the environment has no workloads
         rollout/daemonset/Local/ipv4

rolling updates
  rollout/deployment/Local/ipv4  nftables dual  2 of 5 requests lost, 1 to 3 predicted: dropped by the node, no other UP 2

2 passed, 1 failed, 4 skipped, 1 error in 1 min 05 s
`);
});

test('checks without a verdict are grouped by reason, and fail nothing', () => {
  const inconclusive = [{ id: 'outside/udp', what: 'outside to 172.18.0.11:30000/UDP', because: 'rate limited: 7' }];
  const text = textSummary(aReport(aRun({ cases: [aCase({ inconclusive })] })), plain);
  expect(text).toContain(
    'skipped\n      1  inconclusive: rate limited: 7\n         scenario/etp-local/ipv4, outside/udp\n',
  );
  expect(text).toContain('1 passed, 0 failed, 0 skipped, 0 errors');
});

test('a run in which all is well is short', () => {
  expect(textSummary(aReport(aRun()), plain).split('\n')).toHaveLength(5);
});

test('rounds: each failure once, with its rounds, and flakes', () => {
  const failed = aCase({ checks: [aFailedCheck()] });
  const report = aReport(
    aRun(),
    aRun({ round: 2, cases: [failed] }),
    aRun({ round: 3, cases: [failed] }),
    aRun({ round: 4 }),
  );
  const text = textSummary(report, plain);
  expect(text.match(/FAILED/g)).toHaveLength(1);
  expect(text).toContain('nftables dual, in round 2, 3 of 4');
  expect(text).toContain(`flakes: 2 of 4 case runs in 4 rounds (50.00 %), 1 case
  scenario/etp-local/ipv4  nftables/dual
    passed in round 1, 4
    failed outside/tcp in round 2, 3`);
});

test('beyond the first few, failures are named only', () => {
  const cases = ['a', 'b', 'c'].map((id) => aCase({ id, checks: [aFailedCheck()] }));
  const text = textSummary(aReport(aRun({ cases })), { colours: false, detailed: 1 });
  expect(text.match(/observed/g)).toHaveLength(1);
  expect(text).toContain('2 more, by name only');
  expect(text).toContain('FAILED c  nftables dual');
});

test('a lab that fails many cases is listed once', () => {
  const cases = ['a', 'b', 'c', 'd', 'e'].map((id) => anError(id, 'no environment to run on'));
  expect(textSummary(aReport(aRun({ cases })), plain)).toContain(`ERROR 5 cases: a, b, c and 2 more  nftables dual
  no environment to run on
`);
});

test('steps that the target could not do are listed with their reasons, like skipped cases', () => {
  const skippedSteps = [{ id: 'line 23', because: 'no outside client' }];
  const report = aReport(aRun({ cases: [aCase({ skippedSteps }), aSkip('scenario/sctp/ipv4', 'no outside client')] }));
  const text = textSummary(report, { colours: false, detailed: 3 });
  expect(text).toContain('      2  no outside client\n         scenario/etp-local/ipv4, line 23, scenario/sctp/ipv4\n');
});

test('colours only when wanted, and none from what proxies said', () => {
  const check = aFailedCheck({ observed: `${esc}[2Jgone\u0007` });
  const report = aReport(aRun({ cases: [aCase({ checks: [check] })] }));
  expect(textSummary(report, plain)).toContain('observed  \\x1b[2Jgone\\x07');
  expect(textSummary(report, plain)).not.toContain(esc);
  expect(textSummary(report, { colours: true, detailed: 1 })).toContain(`${esc}[31mFAILED${esc}[39m`);
});
