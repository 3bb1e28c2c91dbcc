import { ipFamilies, type IpFamily } from '@switchyard/core';
import type { DataplaneName, Scenario } from '@switchyard/scenarios';
import type { CaseRecorder, TestEnvironment } from './test-environment.ts';
import type { CaseResult, RunAbout } from './report-file.ts';

/** IP families of the cluster under test. `dual` has cases with Services of one family and of both. */
export type FamilyCell = 'ipv4' | 'ipv6' | 'dual';

/** The IP families of a cell's cluster. */
export function familiesOfCell(cell: FamilyCell): readonly IpFamily[] {
  return cell === 'dual' ? ipFamilies : [cell === 'ipv4' ? 'IPv4' : 'IPv6'];
}

/** All needs of cases beyond writing objects and sending packets. */
export const abilities = [
  /** End the proxy under test and have it start again. */
  'restartProxy',
  /** Keep it ended, and start it at a chosen time. */
  'controlProxy',
  /** Start the proxy with other flags or another configuration file. */
  'configureProxy',
  /** Send from outside the cluster to any address, as through a load balancer. */
  'sendFromOutside',
  /** Change the addresses that a Node object names, and the cluster's ServiceCIDR objects. */
  'changeNodes',
  /** Keep a TCP connection open. */
  'holdConnections',
  /** Keep a connected UDP socket. */
  'holdSockets',
  /** An open loop of requests at a steady rate. */
  'load',
  /** Deployments and DaemonSets whose pods start, become ready and end. */
  'workloads',
  /** A load balancer controller serves Services of type LoadBalancer, or a case can start one in the lab. */
  'loadBalancer',
  'sctp',
  /** Pods of the case's own, which send packets made by hand. */
  'rawPackets',
] as const;

/** One of them. An environment lists its abilities in `can`. */
export type Ability = (typeof abilities)[number];

/** Description of a case before it runs. */
export interface CaseInfo {
  /**
   * Stable: `scenario/etp-local/ipv4`, `matrix/nodePort/Local/ready-remote-only/ipv6`, `sequence/agent-down/ipv4`,
   * `rollout/deployment/Local/ipv4`. Lower case but for words of the API; `--case` globs match it, `*` stops at a slash, `**` does not.
   */
  readonly id: string;
  /** The requirement, in one sentence. */
  readonly title: string;
  /** The KEP, API field or kube-proxy behaviour it checks, in words with a number or a name. */
  readonly why: string;
  /** Tags such as `scenario`, `matrix`, `sequence`, `rollout`, `smoke`, `slow`, `udp`, `terminating`. The first is the kind. */
  readonly tags: readonly string[];
  /** Families that the cluster must have: one, or both. */
  readonly families: IpFamily | 'dual';
  readonly needs: readonly Ability[];
  /** Reason why the case is skipped for this dataplane; undefined: it is not. */
  readonly notFor: string | undefined;
}

/** A case that is a scenario file, or generated as one: the same runner for all. */
export interface ScenarioCase extends CaseInfo {
  readonly kind: 'scenario';
  readonly scenario: Scenario;
  /**
   * Cases with the same batch and the same agent settings change nothing while they run, and share no address, port or
   * name: they may be written to the cluster and checked together.
   */
  readonly batch: string | undefined;
}

/** A case written as a program that controls the environment. */
export interface SequenceCase extends CaseInfo {
  readonly kind: 'sequence';
  /** Records checks. Rejects when the environment failed (a lab error), not when the proxy did. */
  run(environment: TestEnvironment, record: CaseRecorder, signal: AbortSignal): Promise<void>;
}

/** Something to check of a Service proxy. */
export type ConformanceCase = ScenarioCase | SequenceCase;

/** Inputs that decide which cases exist. */
export interface CatalogueOptions {
  /** Dataplane whose answers are expected where kube-proxy's modes differ. */
  readonly dataplane: DataplaneName;
  readonly cell: FamilyCell;
  /** Keeps the cases of families that the cell does not have, so that they can be skipped with a reason. Default false. */
  readonly hasAllFamilies?: boolean;
}

/** Name of a run. Several runs of an invocation may be active side by side. */
export interface RunName {
  readonly proxy: string;
  readonly cell: FamilyCell;
  /** Number of the round, from 1. */
  readonly round: number;
}

/** A planned run with all chosen cases, including those that will be skipped. */
export interface PlannedRun {
  readonly run: RunName;
  readonly caseIds: readonly string[];
}

/** A case that runs. */
interface CaseOfRun {
  readonly run: RunName;
  readonly lane: string;
  readonly id: string;
}

/** Progress of a run. A lane is a lab or the cluster, which runs one unit at a time. */
export type ProgressEvent =
  /** Before everything else, once. */
  | { readonly kind: 'planned'; readonly runs: readonly PlannedRun[] }
  /** Before the first case. `about`: absent in a round that no report is made of. */
  | ({ readonly kind: 'runStarted'; readonly about?: RunAbout } & PlannedRun)
  /** Work of a lane other than cases: `building the lab`, `starting the proxy`. */
  | { readonly kind: 'lane'; readonly lane: string; readonly text: string }
  /** Cases of a batch start together. A case that is skipped only ends. */
  | ({ readonly kind: 'caseStarted' } & CaseOfRun)
  /** Text that was passed to `CaseRecorder.progress`. */
  | ({ readonly kind: 'caseProgress'; readonly text: string } & CaseOfRun)
  | { readonly kind: 'caseEnded'; readonly run: RunName; readonly lane: string; readonly result: CaseResult }
  | { readonly kind: 'runEnded'; readonly run: RunName };

/** Takes progress; must not throw. */
export type OnProgress = (event: ProgressEvent) => void;
