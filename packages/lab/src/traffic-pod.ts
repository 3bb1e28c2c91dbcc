import type { LoadProgramOptions, LoadResult } from './load.ts';
import type { AnswerWait, AwaitedAnswer, ProbeExchange, ProbeRequest, ProbeResult } from './probe-types.ts';
import { nodeProgram } from './program-path.ts';

/** Header with the token that authorizes a client of a traffic pod. */
export const trafficTokenHeader = 'x-switchyard-token';

/** Exit code if the control port is taken. */
export const portTakenExitCode = 98;

/** Options of the traffic pod's program. */
export interface TrafficPodOptions {
  /** Pod name in its answers. */
  readonly pod: string;
  readonly node: string;
  /** Control port, on all addresses of both families. */
  readonly port: number;
  /** Hexadecimal SHA-256 of the token, because a pod's spec is no secret. */
  readonly tokenDigest: string;
  /** Port of an HTTP echo server from the start on; `/readyz` answers 200. Default: none. */
  readonly http?: number;
  /** Port of a TCP echo server from the start on. Default: none. */
  readonly tcp?: number;
  /** Seconds from SIGTERM to its exit, during which it serves. Default 0. */
  readonly delayShutdown?: number;
}

/** Arguments of the program. */
export function trafficPodArguments(options: TrafficPodOptions): readonly string[] {
  const { pod, node, port, tokenDigest, http, tcp, delayShutdown } = options;
  const flags = { '--http': http, '--tcp': tcp, '--delay-shutdown': delayShutdown };
  const given = Object.entries(flags).flatMap(([flag, value]) => (value === undefined ? [] : [flag, String(value)]));
  return ['--pod', pod, '--node', node, '--port', String(port), '--token-digest', tokenDigest, ...given];
}

/** The command that runs the program from this package, on this machine. */
export function trafficPodCommand(): readonly string[] {
  return [process.execPath, ...nodeProgram('traffic-pod')];
}

/** Ports of echo servers. */
export interface EchoPorts {
  readonly http: readonly number[];
  readonly tcp: readonly number[];
  readonly udp: readonly number[];
}

/** One attempt of a traffic pod. */
export interface TrafficProbe extends ProbeRequest {
  /** Uses a source port that this pod has not used recently; excludes `sourcePort`. */
  readonly isFromFreshPort?: boolean;
}

/**
 * Calls of a traffic pod: `POST /<name>` with the argument as JSON, answered by the result as JSON.
 * A refusal is a text with status 400 (not understood), 403 (wrong token) or 404.
 */
export interface TrafficCalls {
  /** Returns the pod's name; shows that the pod runs. */
  readonly hello: { readonly argument: Record<string, never>; readonly result: { readonly pod: string } };
  /** Returns its wall clock, in milliseconds. */
  readonly clock: { readonly argument: Record<string, never>; readonly result: { readonly now: number } };
  /** Ends the program in a moment, also during its delay after SIGTERM. */
  readonly end: { readonly argument: Record<string, never>; readonly result: Record<string, never> };
  /** Returns all addresses in its network namespace, including loopback. */
  readonly addresses: {
    readonly argument: Record<string, never>;
    readonly result: { readonly addresses: readonly string[] };
  };
  /** Returns the ICMP errors suppressed by the rate limits of its network namespace; absent before Linux 6.3. */
  readonly icmpErrors: {
    readonly argument: Record<string, never>;
    readonly result: { readonly heldBack?: number };
  };
  /** Opens missing echo servers and returns those that failed. */
  readonly listen: { readonly argument: EchoPorts; readonly result: { readonly failed: readonly string[] } };
  /** Makes attempts, in parallel unless `isOneByOne`. */
  readonly probe: {
    readonly argument: { readonly probes: readonly TrafficProbe[]; readonly isOneByOne?: boolean };
    readonly result: { readonly results: readonly ProbeResult[] };
  };
  /** Repeats attempts until one pod answers. `at`: CLOCK_MONOTONIC of the pod's machine, in milliseconds. */
  readonly await: {
    readonly argument: { readonly probe: TrafficProbe; readonly until: AnswerWait };
    readonly result: AwaitedAnswer;
  };
  /** Opens a connection and keeps it; `connection` is undefined unless it was answered. */
  readonly open: {
    readonly argument: TrafficProbe;
    readonly result: { readonly result: ProbeResult; readonly connection?: number };
  };
  readonly exchange: {
    readonly argument: { readonly connection: number; readonly text: string; readonly timeout: number };
    readonly result: ProbeExchange;
  };
  readonly close: { readonly argument: { readonly connection: number }; readonly result: Record<string, never> };
  /** Connects a UDP socket, which sends nothing yet. */
  readonly connect: { readonly argument: ProbeRequest; readonly result: { readonly connection: number } };
  /** Sends one datagram by a socket of `connect`. */
  readonly ask: {
    readonly argument: { readonly connection: number; readonly timeout: number };
    readonly result: ProbeResult;
  };
  /** Starts an open loop. */
  readonly load: {
    readonly argument: LoadProgramOptions;
    readonly result: { readonly load: number };
  };
  /** Returns results of a loop from index `from` on, in order of completion; waits up to a second for the first. */
  readonly loaded: {
    readonly argument: { readonly load: number; readonly from: number };
    readonly result: { readonly messages: readonly LoadResult[]; readonly isFinished: boolean };
  };
  readonly unload: { readonly argument: { readonly load: number }; readonly result: Record<string, never> };
}

/** Names of calls. */
export type TrafficCall = keyof TrafficCalls;
