import type { IpAddress, IpFamily, Millis } from '@switchyard/core';
import type { Lab, LabCluster, LoadOptions, LoadRun, ProbeConnection } from '@switchyard/lab';
import type {
  Scenario,
  ScenarioAgent,
  ScenarioFlow,
  ScenarioHealthCheck,
  ScenarioState,
  ScenarioStep,
} from '@switchyard/scenarios';
import type { Ability, ConformanceCase } from './case.ts';
import type { ProxyUnderTest, Target, CheckResult, InconclusiveCheck, RolloutTimeline } from './report-file.ts';
import type { SkippedStep } from './report-file.ts';
import type { PreparedRollout, RolloutCase } from './rollout.ts';

/** A state of one scenario to write to the cluster. */
export interface ScenarioMoment {
  readonly scenario: Scenario;
  readonly state: ScenarioState;
}

/** One answer to one packet, in the addresses of the scenario. */
export type Seen =
  | {
      readonly kind: 'endpoint';
      readonly address: IpAddress;
      readonly port: number;
      readonly isMasqueraded: boolean;
      /** The endpoint that answered is the one that sent (hairpin). */
      readonly isSender: boolean;
    }
  /** RST or ICMP port unreachable. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'timeout' }
  /** A result that fits no expectation, in words. */
  | { readonly kind: 'other'; readonly text: string };

/** Result of waiting for an endpoint's first answer. Times are CLOCK_MONOTONIC, which all processes of a machine share. */
export interface FirstAnswer {
  /** Time of the answer; undefined: none in time. */
  readonly at: Millis | undefined;
  /** Result of the last attempt. */
  readonly last: Seen;
}

/** A UDP socket of a sender for several requests. */
export interface AskingSocket {
  ask(): Promise<Seen>;
  close(): Promise<void>;
}

/** Sends a flow of a scenario between its real addresses. */
export interface FlowConnector {
  /** Attempts side by side, each from a fresh source port, unless the flow names one: then one after the other. */
  attempts(count: number): Promise<readonly Seen[]>;
  /** Opens a TCP connection and keeps it. Needs `holdConnections`; TCP only. `connection` is undefined unless an endpoint answered. */
  hold(): Promise<{ readonly seen: Seen; readonly connection: ProbeConnection | undefined }>;
  /**
   * A UDP socket that is connected once and sends several requests. Needs `holdSockets`, and is undefined on an environment without it;
   * UDP only. If the kernel destroys the socket, each request reports that.
   */
  readonly connected?: () => Promise<AskingSocket>;
  /** Like `connected`, but the socket names the address with each datagram and ignores other senders: a refusal may look like silence. */
  readonly unconnected?: () => Promise<AskingSocket>;
  /** Open loop: a new connection and an HTTP GET per request. Needs `load`; TCP only. */
  load(options: Omit<LoadOptions, 'url'>): LoadRun;
  /** Attempts every `interval` until this endpoint answers; timed where the packets are sent. TCP and UDP. */
  firstAnswer(by: IpAddress, wait: { readonly interval: Millis; readonly timeout: Millis }): Promise<FirstAnswer>;
}

export interface StartOptions {
  /**
   * The start is measured: the proxy gets the highest priority for its whole life, so that a busy machine gives the same verdict as an
   * idle one. Default false.
   */
  readonly isTimed?: boolean;
}

/** End of a proxy that was not stopped. */
export interface OwnEnd {
  /** `has ended with 2`. */
  readonly observed: string;
  /** Lines of its log with the reason. */
  readonly log: readonly string[];
}

/** The proxy under test on the node under test. Needs `restartProxy`. */
export interface ProxyControl {
  /** Sends SIGKILL; resolves when the process has ended. Its rules stay in the kernel. */
  kill(): Promise<void>;
  /** Sends SIGTERM, and SIGKILL after five seconds; resolves when the process has ended. */
  stop(): Promise<void>;
  /**
   * Starts it with the settings of the last `reset`. Resolves at once, with the CLOCK_MONOTONIC time of its exec. Without `controlProxy`
   * the cluster starts it when it has ended; this resolves when it has.
   */
  start(options?: StartOptions): Promise<Millis>;
  /** Resolves when packets show that the proxy has applied everything written. Rejects with the end of its log when it ends or is too slow. */
  settled(signal: AbortSignal): Promise<void>;
  /**
   * Runs it on all other nodes of the lab too, with the settings of the last `reset`; resolves when they are started. Disposing
   * stops those, and leaves in their kernels what they wrote.
   */
  onOtherNodes(): Promise<AsyncDisposable>;
  /** Undefined: it runs, was stopped or killed, or has never settled in this environment, which may not be its fault. */
  ownEnd(): Promise<OwnEnd | undefined>;
}

/** Faults of the machine during a check, for which no proxy is responsible. */
export interface MachineEvidence {
  /** The longest time that a request took which no proxy forwards. */
  readonly slowest: Millis;
  /** Why the kernel dropped packets for want of room; undefined: it dropped none. */
  readonly shortage: string | undefined;
}

/**
 * The environment of cases: a cluster whose node1 has the proxy under test, echo servers that stand for endpoints, and senders of
 * every source class. One case (or batch) at a time.
 */
export interface TestEnvironment extends AsyncDisposable {
  readonly target: Target;
  readonly ipFamilies: readonly IpFamily[];
  readonly proxyUnderTest: ProxyUnderTest;
  readonly can: ReadonlySet<Ability>;
  /** Reason why the environment lacks an ability. Absent or undefined: only the ability's name is known. */
  readonly whyNot?: (ability: Ability) => string | undefined;
  /** Undefined unless the environment `can` restart it. */
  readonly proxy: ProxyControl | undefined;
  /** The lab, for sequences that use it directly; undefined on a cluster. */
  readonly lab: Lab | undefined;
  /** The lab's API server and controllers; undefined on a cluster. */
  readonly cluster: LabCluster | undefined;
  /** Deploys the app of a rolling update, and returns the ways to it. Absent: the lab does, which `lab` and `cluster` are. */
  readonly prepareRollout?: (
    what: RolloutCase,
    tell: (text: string) => void,
    signal: AbortSignal,
  ) => Promise<PreparedRollout>;
  /** Reason why this environment cannot run a case, beyond the case's `needs`; undefined: it can. */
  obstacle(one: ConformanceCase): string | undefined;
  /**
   * Reason why this environment cannot do one step of a scenario; undefined: it can. Such steps are left out and listed with the result;
   * the needs of the others are then compared with `can`.
   */
  stepObstacle(scenario: Scenario, step: ScenarioStep): string | undefined;
  /** Empties the cluster and runs the proxy with these settings; resolves when the proxy has applied that. */
  reset(agent: ScenarioAgent, signal: AbortSignal): Promise<void>;
  /**
   * Makes the cluster hold exactly this, by the difference to what it holds, and waits until packets show that the proxy has it;
   * `wait: false` (for a proxy that does not run) only writes.
   */
  put(moments: readonly ScenarioMoment[], options: { readonly wait: boolean }, signal: AbortSignal): Promise<void>;
  connectorFor(scenario: Scenario, flow: ScenarioFlow, signal: AbortSignal): Promise<FlowConnector>;
  /**
   * How many ICMP errors the rate limits of the node under test have held back until now, of both families; undefined where the node
   * does not say. A reject that is held back looks like a drop.
   */
  icmpErrorsHeldBack(signal: AbortSignal): Promise<number | undefined>;
  /** How far the machine could be trusted between two times (wall clock). Absent: the environment does not measure it. */
  readonly machineBetween?: (from: Millis, to: Millis, signal: AbortSignal) => Promise<MachineEvidence>;
  /** Share of a processor that a program gets now, 1 where one is free. Absent: the environment does not measure it. */
  readonly processorShare?: (signal: AbortSignal) => Promise<number>;
  /** Current answer of a healthCheckNodePort, in the words of `healthText`. */
  health(scenario: Scenario, check: ScenarioHealthCheck, signal: AbortSignal): Promise<string>;
  /**
   * Sends this flow once more with its packet followed through the kernel; one line per station (hook, rule, verdict, conntrack).
   * One line with the reason if the environment cannot.
   */
  trace(scenario: Scenario, flow: ScenarioFlow, signal: AbortSignal): Promise<readonly string[]>;
}

/** A flow with its scenario, so that a failure can be explained by the table and followed through the kernel. */
export interface FlowAt {
  readonly scenario: Scenario;
  readonly flow: ScenarioFlow;
}

/** Records the results of a case, in order. */
export interface CaseRecorder {
  /** The verdict is `expected === observed`. `since`: when the evidence began (wall clock); default: with the check before. */
  check(check: Omit<CheckResult, 'isAsExpected' | 'path'>, at?: FlowAt, since?: Millis): void;
  /** Records a check without a verdict, with the reason. It counts neither as passed nor as failed. */
  inconclusive(check: InconclusiveCheck): void;
  /** Records a check that this environment cannot make. */
  skip(step: SkippedStep): void;
  /** A rolling update's picture and figures. */
  rollout(timeline: RolloutTimeline): void;
  /** One line of live progress. */
  progress(text: string): void;
}
