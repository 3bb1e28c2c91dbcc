/** One connection attempt. Plain data: it crosses a process boundary as JSON. */
export interface ProbeRequest {
  /**
   * `http`: GET `path`. `tcp`: the echo server speaks first. `udp`: one datagram out, one back. `connect`: answered as
   * soon as a TCP connection stands, by whomever.
   */
  readonly protocol: 'http' | 'tcp' | 'udp' | 'connect';
  readonly address: string;
  readonly port: number;
  /**
   * Milliseconds for everything, from the first packet to the last byte of the answer, pauses of the prober not counted. Default 1500: over veth an
   * ICMP error may arrive while `connect` still holds the socket; the kernel then ignores it (LockDroppedIcmps)
   * and the next one comes with the second SYN, a second later. A shorter timeout can take a reject for a drop.
   */
  readonly timeout?: number;
  /** Local address to send from; it must exist in the namespace. Default: the kernel's choice. */
  readonly source?: string;
  /** Local port to send from, to repeat the same flow. Default: a fresh one; of UDP probes one that none of this program has had. */
  readonly sourcePort?: number;
  /** For `http`; default `/`. */
  readonly path?: string;
  /**
   * For sockets of `Prober.connectUdp`: they are not connected, but name the address with each datagram, as many resolvers do, and do
   * not hear answers that come from elsewhere. Nobody tells them of ICMP errors. Default false.
   */
  readonly isUnconnected?: boolean;
}

/** Attempts are repeated until this pod answers. All in milliseconds. */
export interface AnswerWait {
  /** Name of the pod, as its echo server says it. */
  readonly by: string;
  /** Pause between two attempts; the machine is shared with what is being measured. */
  readonly interval: number;
  readonly timeout: number;
}

/** How waiting for an answer ended. */
export interface AwaitedAnswer {
  /** The last attempt; the awaited pod's answer, or what came instead until the time was over. */
  readonly result: ProbeResult;
  /** When it ended, in milliseconds of CLOCK_MONOTONIC, which all processes of a machine share. */
  readonly at: number;
}

/** How the attempt ended. `took` is in milliseconds. */
export type ProbeResult = { readonly took: number } & (
  | ProbeAnswer
  /** RST or ICMP port unreachable in answer to the first packet, also from the prober's own host. */
  | { readonly status: 'refused' }
  /** No complete answer in time: dropped on the way or not handled. */
  | { readonly status: 'timeout' }
  /** The prober's own kernel took it away and said so (EPERM), as a BPF program at a socket's connect does that drops. */
  | { readonly status: 'dropped' }
  /** Connected, then broken by an RST. */
  | { readonly status: 'reset' }
  /** Connected, then closed without a byte, as a load balancer without servers does. */
  | { readonly status: 'empty' }
  /** No route, ICMP host or network unreachable, or prohibited; `code` is the errno name. */
  | { readonly status: 'unreachable'; readonly code: string }
);

/** Somebody answered. The fields from `by` on are undefined when it was not an echo server. */
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

/** How a line sent over a kept connection came back. `closed`: the other end closed it, or it never was open. */
export interface ProbeExchange {
  readonly status: 'echoed' | 'garbled' | 'timeout' | 'reset' | 'closed';
}

/** A TCP connection that stays open, to see whether it survives. */
export interface ProbeConnection {
  /** Sends one line and waits for its echo, by default 1500 ms. */
  exchange(text: string, timeout?: number): Promise<ProbeExchange>;
  close(): Promise<void>;
}

/** A connected UDP socket that stays open, to see whom it reaches. */
export interface ProbeSocket {
  /** One datagram out, one back, by default within 1500 ms. A socket that was taken away by its kernel says so each time (`unreachable`). */
  ask(timeout?: number): Promise<ProbeResult>;
  close(): Promise<void>;
}

/** What an echo server says about itself and its peer, as one JSON object. */
export interface EchoAnswer {
  readonly pod: string;
  readonly node: string;
  readonly protocol: 'http' | 'tcp' | 'udp';
  readonly source: string;
  readonly sourcePort: number;
  readonly destination: string;
  readonly destinationPort: number;
}
