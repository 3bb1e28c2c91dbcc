import { millis } from '@switchyard/core';
import type { CaseResult, CheckResult, ReportFile, RolloutTimeline, RunReport } from '../model/report-file.ts';

// Reports for tests: each builder makes one that passed, and takes what differs.

/** When all built runs and cases start. */
export const builtAt = '2026-01-31T12:00:00.000Z';

/** A check that found what it expected. */
export function aCheck(over: Partial<CheckResult> = {}): CheckResult {
  return {
    id: 'outside/tcp',
    what: 'outside to 198.51.100.7:80/TCP',
    expected: 'forward to 10.244.1.5',
    observed: 'forward to 10.244.1.5',
    isAsExpected: true,
    because: [],
    path: [],
    ...over,
  };
}

/** A check that did not, with the packet's path by the table and in the kernel. */
export function aFailedCheck(over: Partial<CheckResult> = {}): CheckResult {
  return aCheck({
    observed: 'drop',
    isAsExpected: false,
    because: ['4 attempts of 4 timed out'],
    path: [
      { run: 'table', lines: ['frontend 198.51.100.7:80/TCP of default/web', 'forward to 10.244.1.5:8080'] },
      { run: 'packets', lines: ['prerouting: jump services', 'services: verdict drop'] },
    ],
    ...over,
  });
}

/** A case that passed; one that failed if a check did. */
export function aCase(over: Partial<CaseResult> = {}): CaseResult {
  const checks = over.checks ?? [aCheck()];
  return {
    id: 'scenario/etp-local/ipv4',
    title: 'A Local service is reached where it has an endpoint',
    why: 'API: externalTrafficPolicy "Local"',
    tags: ['scenario', 'tcp'],
    families: 'IPv4',
    status: checks.every(({ isAsExpected }) => isAsExpected) ? 'passed' : 'failed',
    because: undefined,
    startedAt: builtAt,
    duration: millis(400),
    checks,
    rollouts: [],
    ...over,
  };
}

/** A case that was skipped for this reason. */
export function aSkip(id: string, because: string): CaseResult {
  return aCase({ id, status: 'skipped', because, checks: [], duration: millis(0) });
}

/** A case in which the lab failed. */
export function anError(id: string, because: string): CaseResult {
  return aCase({ id, status: 'error', because, checks: [] });
}

/** A rolling update that lost two of five requests. */
export function aRollout(over: Partial<RolloutTimeline> = {}): RolloutTimeline {
  return {
    title: 'Deployment behind externalTrafficPolicy: Local',
    requests: 5,
    lost: 2,
    predictedLost: { least: 1, most: 3 },
    lostByCause: { droppedByNodeAlone: 2 },
    outcomes: [
      [0, 'web-1'],
      [100, 'web-1'],
      [200, 'timeout'],
      [300, 'timeout'],
      [400, 'web-2'],
    ],
    events: [
      { at: 150, lane: 'pods', text: 'web-1 gets SIGTERM' },
      { at: 350, lane: 'slices', text: 'web-2 is ready' },
    ],
    svg: undefined,
    ...over,
  };
}

/** Options of `aRun`, or only the name of its proxy. */
export type RunChanges = Partial<Omit<RunReport, 'proxy'>> & { readonly proxy?: string };

/** A run of one passed case by our nftables backend in the lab. */
export function aRun({ proxy = 'nftables', ...over }: RunChanges = {}): RunReport {
  const dataplane = proxy.startsWith('iptables') ? 'iptables' : proxy.startsWith('ebpf') ? 'ebpf' : 'nftables';
  return {
    target: 'lab',
    proxy: { name: proxy, dataplane, command: undefined },
    cell: 'dual',
    kernel: '6.12.9',
    seed: 1,
    round: 1,
    startedAt: builtAt,
    duration: millis(65_000),
    cases: [aCase()],
    ...over,
  };
}

/** A report of these runs. */
export function aReport(...runs: readonly RunReport[]): ReportFile {
  return { schema: 'switchyard-conformance/2', version: '0.0.0', runs };
}
