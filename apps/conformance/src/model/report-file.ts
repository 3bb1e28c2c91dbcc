import type { DataplaneName } from '@switchyard/scenarios';
import type { IpFamily, Millis } from '@switchyard/core';
import type { LossCause } from '@switchyard/loss';
import type { FamilyCell } from './case.ts';

/** Kind of environment of a run. */
export type Target = 'lab' | 'cluster';

/** The proxy on the node under test. */
export interface ProxyUnderTest {
  /** `nftables`, `iptables-nft`, `ebpf-tc`, ... for ours; `--proxy-name` or the program's base name for others. Column head of the matrix. */
  readonly name: string;
  /** Dataplane whose answers are expected where kube-proxy's modes differ. */
  readonly dataplane: DataplaneName;
  /** As `--proxy-cmd` gave it, placeholders unfilled; undefined for a cluster's own. */
  readonly command: string | undefined;
}

/** Result of one check. */
export interface CheckResult {
  /** Stable within its case: `outside/tcp`, `line 23`, `first answer after the start`. `diff` compares checks of equal case and id. */
  readonly id: string;
  /** Description of the check: `outside to 198.51.100.7:80/TCP`. */
  readonly what: string;
  readonly expected: string;
  /** Also recorded when it is as expected, because `diff` compares proxies by it. */
  readonly observed: string;
  readonly isAsExpected: boolean;
  readonly because: readonly string[];
  /** Path of the packet; empty unless the check failed. */
  readonly path: readonly PacketPath[];
}

/** The packet's path: the expected one, by Switchyard's table, or that of real packets in the kernel. One line with the reason if it was not traced; empty: nothing is known. */
export interface PacketPath {
  readonly run: 'table' | 'packets';
  readonly lines: readonly string[];
}

/** Status of a case. `error`: the lab or cluster failed, and nothing is known about the proxy. */
export type CaseStatus = 'passed' | 'failed' | 'skipped' | 'error';

/** A case's result. */
export interface CaseResult {
  readonly id: string;
  readonly title: string;
  readonly why: string;
  readonly tags: readonly string[];
  readonly families: IpFamily | 'dual';
  readonly status: CaseStatus;
  /** Reason of a skip or an error; undefined otherwise. */
  readonly because: string | undefined;
  readonly startedAt: string;
  readonly duration: Millis;
  readonly checks: readonly CheckResult[];
  readonly rollouts: readonly RolloutTimeline[];
  /** Steps and checks that the target cannot do; the case was run without them. Absent: none. */
  readonly skippedSteps?: readonly SkippedStep[];
  /** Checks without a verdict. A case that has nothing else is a skip. Absent: none. */
  readonly inconclusive?: readonly InconclusiveCheck[];
}

/** A check that could not be decided: what was seen fits both a right and a wrong proxy. */
export interface InconclusiveCheck {
  /** Like the id of a `CheckResult`. */
  readonly id: string;
  /** Like `what` of a `CheckResult`. */
  readonly what: string;
  /** Reason, such as `rate limited: ...`. */
  readonly because: string;
}

/** A step of a scenario, or a check of a sequence, that was left out. */
export interface SkippedStep {
  /** Like the id of a `CheckResult`: `outside/tcp`, `line 23`. */
  readonly id: string;
  readonly because: string;
}

/** One rolling update: what was lost and why, against what core predicts; times in ms from `startedAt`. */
export interface RolloutTimeline {
  readonly title: string;
  readonly requests: number;
  readonly lost: number;
  readonly predictedLost: { readonly least: number; readonly most: number };
  readonly lostByCause: Partial<Readonly<Record<LossCause, number>>>;
  /** Requests as `[scheduledAt, outcome]`, in order. */
  readonly outcomes: readonly (readonly [number, string])[];
  /** Events during the rollout: pods, slices, syncs, health checks. */
  readonly events: readonly { readonly at: number; readonly lane: string; readonly text: string }[];
  /** The experiment's drawing: shapes and text alone. */
  readonly svg: string | undefined;
}

/** One run of cases against one proxy in one cell. */
export interface RunReport {
  readonly target: Target;
  readonly proxy: ProxyUnderTest;
  readonly cell: FamilyCell;
  readonly kernel: string;
  readonly seed: number;
  /** Number of the round of `--repeat`, from 1. */
  readonly round: number;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly duration: Millis;
  readonly cases: readonly CaseResult[];
}

/** A run before it has results. */
export type RunAbout = Omit<RunReport, 'cases' | 'duration'>;

/** What `--json` writes. Readers refuse another schema. */
export interface ReportFile {
  readonly schema: 'switchyard-conformance/2';
  /** Version of the tool. */
  readonly version: string;
  readonly runs: readonly RunReport[];
}

const version = '0.1.0';

/** A report of these runs by this version of the tool. */
export function reportOf(runs: readonly RunReport[]): ReportFile {
  return { schema: 'switchyard-conformance/2', version, runs };
}
