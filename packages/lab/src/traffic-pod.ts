import type { LoadProgramOptions } from './load.ts';
import type { LoadResult } from './load-types.ts';
import type { AnswerWait, AwaitedAnswer, ProbeExchange, ProbeRequest, ProbeResult } from './probe-types.ts';
import { nodeProgram } from './program-path.ts';

/** The header that carries the token of whoever may use a traffic pod. */
export const trafficTokenHeader = 'x-switchyard-token';

/** With this it ends when its control port is taken. */
export const portTakenExitCode = 98;

/** How the traffic pod's program is started. */
export interface TrafficPodOptions {
  /** Who it says it is. */
  readonly pod: string;
  readonly node: string;
  /** Where it takes orders, all addresses, both families. */
  readonly port: number;
  /** Hexadecimal SHA-256 of the token: what stands in a pod's spec is no secret. */
  readonly tokenDigest: string;
}

/** Arguments of the program. */
export function trafficPodArguments({ pod, node, port, tokenDigest }: TrafficPodOptions): readonly string[] {
  return ['--pod', pod, '--node', node, '--port', String(port), '--token-digest', tokenDigest];
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

/** One attempt a traffic pod is to make. */
export interface TrafficProbe extends ProbeRequest {
  /** Sent from a port that no attempt of this pod has had for long; `sourcePort` is not given then. */
  readonly isFromFreshPort?: boolean;
}

/**
 * What a traffic pod does when it is asked: `POST /<name>` with the argument as JSON, answered by the result as JSON.
 * A refusal is a text with status 400 (not understood), 403 (wrong token) or 404.
 */
export interface TrafficCalls {
  /** Who it is; for knowing that it runs. */
  readonly hello: { readonly argument: Record<string, never>; readonly result: { readonly pod: string } };
  /** All addresses that the interfaces of its network namespace have, loopback's too. */
  readonly addresses: {
    readonly argument: Record<string, never>;
    readonly result: { readonly addresses: readonly string[] };
  };
  /** ICMP errors that the rate limits of its network namespace have held back; absent where the kernel does not count them. */
  readonly icmpErrors: {
    readonly argument: Record<string, never>;
    readonly result: { readonly heldBack?: number };
  };
  /** Opens echo servers that are not open yet, and says which could not be. */
  readonly listen: { readonly argument: EchoPorts; readonly result: { readonly failed: readonly string[] } };
  /** Attempts, side by side unless told. */
  readonly probe: {
    readonly argument: { readonly probes: readonly TrafficProbe[]; readonly isOneByOne?: boolean };
    readonly result: { readonly results: readonly ProbeResult[] };
  };
  /** Attempts until one pod answers. `at`: CLOCK_MONOTONIC of the pod's machine, in milliseconds. */
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
  /** Starts an open loop, as `LoadOptions` with everything given. */
  readonly load: {
    readonly argument: LoadProgramOptions;
    readonly result: { readonly load: number };
  };
  /** Results of a loop from the `from`-th on, in the order of completion; waits up to a second when there are none yet. */
  readonly loaded: {
    readonly argument: { readonly load: number; readonly from: number };
    readonly result: { readonly messages: readonly LoadResult[]; readonly isFinished: boolean };
  };
  readonly unload: { readonly argument: { readonly load: number }; readonly result: Record<string, never> };
}

/** Names of calls. */
export type TrafficCall = keyof TrafficCalls;
