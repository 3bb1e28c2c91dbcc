import { millis } from '@switchyard/core';
import { seededRandom } from '@switchyard/core/testing';
import type { CaseResult, CheckResult, ReportFile, RolloutTimeline } from '../model/report-file.ts';
import { aCase, aCheck, aReport, aRun, aSkip } from './report-builders.ts';

/** How large a made-up report is. */
export interface BigReportOptions {
  readonly proxies: readonly string[];
  readonly rounds: number;
  /** Beside 208 cases of the matrix and ten others. */
  readonly scenarios: number;
  /** 0 to 1. */
  readonly failing: number;
}

const states = [
  'none',
  'not-ready',
  'ready-local-only',
  'ready-remote-only',
  'ready-both',
  'terminating-local-beside-ready-remote',
  'terminating-remote-beside-ready-local',
  'terminating-local-only',
  'terminating-remote-only',
  'terminating-both',
  'stopped-beside-ready',
  'stopped-beside-terminating',
  'stopped-alone',
];
const frontends = ['clusterIP', 'nodePort', 'externalIP', 'loadBalancerIP'];
const features = [
  'node-port',
  'etp-local',
  'affinity',
  'terminating',
  'source-ranges',
  'topology',
  'restart',
  'hairpin',
];
const families = ['ipv4', 'ipv6'] as const;

/** A report as a whole catalogue makes it, with some failures, skips and rolling updates: for how pages look and how fast they are. */
export function bigReport({ proxies, rounds, scenarios, failing }: BigReportOptions): ReportFile {
  const random = seededRandom('big report');
  const runs = proxies.flatMap((proxy) =>
    Array.from({ length: rounds }, (_, round) => {
      const context = { proxy, scenarios, fails: () => random() < failing };
      const cases = [...matrixCases(context), ...scenarioCases(context), ...otherCases(context)];
      return aRun({ proxy, round: round + 1, cases, duration: millis(cases.length * 300) });
    }),
  );
  return aReport(...runs);
}

interface Context {
  readonly proxy: string;
  readonly scenarios: number;
  readonly fails: () => boolean;
}

function matrixCases({ proxy, fails }: Context): readonly CaseResult[] {
  return frontends.flatMap((frontend) =>
    ['Cluster', 'Local'].flatMap((policy) =>
      states.flatMap((state) =>
        families.map((family) => {
          const expected = expectedOf(policy, state, proxy);
          const flow = (source: string, protocol: string): CheckResult =>
            looked(`${source} to ${addressOf(family)}:80/${protocol}`, expected, fails);
          const checks = ['pod', 'node', 'outside'].flatMap((source) =>
            ['TCP', 'UDP'].map((protocol) => flow(source, protocol)),
          );
          return aCase({
            id: `matrix/${frontend}/${policy}/${state}/${family}`,
            title: `${frontend} with ${policy}, where endpoints are ${state.replaceAll('-', ' ')}`,
            why: 'KEP-1669: with Local, serving terminating endpoints are used when no local endpoint is ready',
            tags: ['matrix', frontend, 'tcp', 'udp'],
            families: family === 'ipv4' ? 'IPv4' : 'IPv6',
            checks,
            duration: millis(300),
          });
        }),
      ),
    ),
  );
}

function expectedOf(policy: string, state: string, proxy: string): string {
  if (state === 'none' || state === 'not-ready' || state === 'stopped-alone') {
    return proxy.startsWith('iptables') && state === 'not-ready' ? 'drop' : 'reject';
  }
  if (policy === 'Local' && state.includes('remote-only')) return 'drop';
  return policy === 'Local' ? 'forward to 10.244.1.5' : 'forward to 10.244.1.5, 10.244.2.5, masqueraded';
}

function addressOf(family: string): string {
  return family === 'ipv4' ? '198.51.100.7' : '[2001:db8:100::7]';
}

function looked(what: string, expected: string, fails: () => boolean): CheckResult {
  const id = what.replace(/ to .*\//, '/').toLowerCase();
  if (!fails()) return aCheck({ id, what, expected, observed: expected });
  const observed = expected === 'drop' ? 'forward to 10.244.2.5, masqueraded' : 'drop';
  return aCheck({
    id,
    what,
    expected,
    observed,
    isAsExpected: false,
    because: ['8 attempts of 8 showed this'],
    path: [
      {
        run: 'table',
        lines: [
          'the address is a load-balancer IP of default/web, port 80/TCP',
          'sent from outside, so the external traffic policy counts: Local',
          'there are 2 endpoints, of which 1 is on this node: 10.244.1.5:8080 (serving, terminating)',
          'no endpoint on this node is ready, so those that serve while they terminate are used (KEP-1669)',
          `verdict: ${expected}`,
        ],
      },
      {
        run: 'packets',
        lines: [
          'ip switchyard raw-prerouting: verdict accept (iif "uplink" ip saddr 203.0.113.9 ip daddr 198.51.100.7 tcp sport 40001 tcp dport 80)',
          'conntrack: NEW tcp 203.0.113.9:40001 > 198.51.100.7:80',
          'ip switchyard nat-prerouting rule: ip daddr . meta l4proto . th dport vmap @service-ips: jump svc-web-external',
          'ip switchyard svc-web-external rule: numgen random mod 0 vmap { }: no match',
          'ip switchyard filter-prerouting rule: drop: verdict drop',
        ],
      },
    ],
  });
}

function scenarioCases({ proxy, scenarios, fails }: Context): readonly CaseResult[] {
  return Array.from({ length: scenarios }, (_, index) => {
    const feature = features[index % features.length] ?? '';
    const id = `scenario/${feature}-${Math.floor(index / 2)}/${families[index % 2] ?? ''}`;
    if (feature === 'topology' && proxy.startsWith('ebpf'))
      return aSkip(id, 'the environment cannot change zones of Nodes');
    const checks = Array.from({ length: 6 }, (__, line) => ({
      ...looked(`outside to 198.51.100.${line}:80/TCP`, 'forward to 10.244.1.5', fails),
      id: `line ${line + 10}`,
    }));
    return aCase({ id, title: `What ${feature} promises, part ${index}`, tags: ['scenario', 'tcp', feature], checks });
  });
}

function otherCases({ proxy, fails }: Context): readonly CaseResult[] {
  const sequences = ['agent-down', 'udp-endpoint-replacement', 'restart-under-load', 'service-type-tour'].flatMap(
    (name) =>
      families.map((family) => {
        const checks = [looked('first answer after the start', 'under 0.61 s', fails)].map((check) =>
          check.isAsExpected ? { ...check, observed: proxy === 'nftables' ? '0.21 s' : '0.43 s' } : check,
        );
        return aCase({
          id: `sequence/${name}/${family}`,
          title: `A proxy through ${name}`,
          tags: ['sequence', 'slow'],
          checks,
        });
      }),
  );
  const rollouts = ['Cluster', 'Local'].map((policy) =>
    aCase({
      id: `rollout/deployment/${policy}/ipv4`,
      title: `A rolling update of a Deployment with ${policy} loses nothing`,
      tags: ['rollout', 'slow'],
      checks: [aCheck({ id: 'lost', what: 'lost requests', expected: '0', observed: '0' })],
      rollouts: [madeTimeline(policy, fails())],
      duration: millis(45_000),
    }),
  );
  return [...sequences, ...rollouts];
}

function madeTimeline(policy: string, isLossy: boolean): RolloutTimeline {
  const outcomeAt = (at: number): string => (at < 9000 ? 'web-1' : isLossy && at < 11_000 ? 'timeout' : 'web-2');
  const outcomes = Array.from({ length: 1500 }, (_, index) => [index * 20, outcomeAt(index * 20)] as const);
  const lost = outcomes.filter(([, outcome]) => outcome === 'timeout').length;
  return {
    title: `Deployment, externalTrafficPolicy: ${policy}`,
    requests: outcomes.length,
    lost,
    predictedLost: { least: 0, most: 0 },
    lostByCause: lost === 0 ? {} : { appGone: lost },
    outcomes,
    events: [
      { at: 4000, lane: 'pods', text: 'web-2 created' },
      { at: 7200, lane: 'pods', text: 'web-2 ready' },
      { at: 9000, lane: 'pods', text: 'web-1 gets SIGTERM' },
      { at: 7230, lane: 'slices', text: 'web-2 ready' },
      { at: 9020, lane: 'slices', text: 'web-1 terminating' },
      { at: 7240, lane: 'proxy', text: 'applied' },
      { at: 9030, lane: 'proxy', text: 'applied' },
    ],
    svg: undefined,
  };
}
