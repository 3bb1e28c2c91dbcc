import type { SctpRequest } from './sctp-sender.ts';
import type { TrafficCalls } from './traffic-pod.ts';

/** One connection attempt. Plain data: it crosses a process boundary as JSON. */
export interface ProbeRequest {
  /**
   * `http`: GET `path`. `tcp`: the echo server speaks first. `udp`: one datagram out, one back. `connect`: answered as
   * soon as a TCP connection is established, by any server.
   */
  readonly protocol: 'http' | 'tcp' | 'udp' | 'connect';
  readonly address: string;
  readonly port: number;
  /**
   * Time limit in milliseconds from the first packet to the last byte of the answer, without pauses of the prober. Default 1500: over veth an
   * ICMP error may arrive while `connect` still holds the socket; the kernel then ignores it (LockDroppedIcmps)
   * and the next one comes with the second SYN, a second later. With a shorter timeout a reject can look like a drop.
   */
  readonly timeout?: number;
  /** Local address to send from; it must exist in the namespace. Default: the kernel's choice. */
  readonly source?: string;
  /** Local port to send from, to repeat the same flow. Default: the kernel's choice; for UDP probes a port that this program has not used. */
  readonly sourcePort?: number;
  /** For `http`; default `/`. */
  readonly path?: string;
  /**
   * For `Prober.connectUdp`: an unconnected socket that sends each datagram to the address, as many resolvers do. It does
   * not receive answers from other addresses or ICMP errors. Default false.
   */
  readonly isUnconnected?: boolean;
}

/** Condition for repeated attempts: until this pod answers. All times in milliseconds. */
export interface AnswerWait {
  /** Name of the pod in its echo object. */
  readonly by: string;
  /** Pause between two attempts; the machine is shared with what is being measured. */
  readonly interval: number;
  readonly timeout: number;
}

/** Result of waiting for an answer. */
export interface AwaitedAnswer {
  /** Result of the last attempt: the awaited pod's answer, or any other result after the timeout. */
  readonly result: ProbeResult;
  /** When it ended, in milliseconds of CLOCK_MONOTONIC, which all processes of a machine share. */
  readonly at: number;
}

/** Result of an attempt. `took` is in milliseconds. */
export type ProbeResult = { readonly took: number } & (
  | ProbeAnswer
  /** RST or ICMP port unreachable in answer to the first packet, also from the prober's own host. */
  | { readonly status: 'refused' }
  /** No complete answer in time: dropped on the way or not handled. */
  | { readonly status: 'timeout' }
  /** The prober's own kernel dropped it with EPERM, as a BPF program at connect does. */
  | { readonly status: 'dropped' }
  /** Connected, then broken by an RST. */
  | { readonly status: 'reset' }
  /** Connected, then closed without a byte, as a load balancer without servers does. */
  | { readonly status: 'empty' }
  /** No route, ICMP host or network unreachable, or prohibited; `code` is the errno name. */
  | { readonly status: 'unreachable'; readonly code: string }
);

/** An answer. The fields from `by` on are undefined unless an echo server sent it. */
export interface ProbeAnswer {
  readonly status: 'answered';
  readonly httpStatus: number | undefined;
  /** Header names in lower case; empty unless `http`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The echo server's pod name. */
  readonly by: string | undefined;
  readonly node: string | undefined;
  /** The client address that the echo server saw. */
  readonly seenSource: string | undefined;
  readonly seenSourcePort: number | undefined;
}

/** Result of a line sent over a kept connection. `closed`: the peer closed it, or it was never open. */
export interface ProbeExchange {
  readonly status: 'echoed' | 'garbled' | 'timeout' | 'reset' | 'closed';
}

/** A TCP connection that stays open, for tests whether it survives. */
export interface ProbeConnection {
  /** Sends one line and waits for its echo, by default 1500 ms. */
  exchange(text: string, timeout?: number): Promise<ProbeExchange>;
  close(): Promise<void>;
}

/** A connected UDP socket that stays open, for tests which pod it reaches. */
export interface ProbeSocket {
  /** One datagram out, one back, by default within 1500 ms. A socket that the kernel destroyed returns `unreachable` each time. */
  ask(timeout?: number): Promise<ProbeResult>;
  close(): Promise<void>;
}

/** Answer of an echo server, one JSON object: its identity and its peer. */
export interface EchoAnswer {
  readonly pod: string;
  readonly node: string;
  readonly protocol: 'http' | 'tcp' | 'udp';
  readonly source: string;
  readonly sourcePort: number;
  readonly destination: string;
  readonly destinationPort: number;
}

export type CallHandlers<
  Calls extends Readonly<Record<keyof Calls, { readonly argument: unknown; readonly result: unknown }>>,
> = {
  readonly [Name in keyof Calls]: (argument: Calls[Name]['argument']) => Promise<Calls[Name]['result']>;
};

/** Calls of a probe agent over Node's IPC channel. */
export interface ProberCalls extends Pick<TrafficCalls, 'await' | 'open' | 'exchange' | 'close' | 'connect' | 'ask'> {
  readonly probe: { readonly argument: ProbeRequest; readonly result: ProbeResult };
  readonly sctp: { readonly argument: SctpRequest; readonly result: readonly ProbeResult[] };
}

/** From the owner to the probe agent. */
export interface ProbeCall {
  readonly id: number;
  readonly name: keyof ProberCalls;
  readonly argument: unknown;
}

/** From the probe agent to the owner, with the id of the call it answers; 0 when the agent is ready. */
export interface ProbeReply {
  readonly id: number;
  readonly result?: unknown;
}
