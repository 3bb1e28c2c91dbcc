import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { connect, type Socket } from 'node:net';
import type { LabHost } from './lab.ts';
import { request as httpRequest } from './lean-http.ts';
import type { AnswerWait, AwaitedAnswer, EchoAnswer, ProbeAnswer, ProbeRequest, ProbeResult } from './probe-types.ts';

/** Longest part of a pause of the process that counts as waiting, in milliseconds. */
const step = 250;

/**
 * Calls `onSilence` after `timeout` milliseconds in which this process could have received an answer. On a busy or suspended
 * machine a plain timer expires while the answer is unread in the socket, and a slow answer looks lost. Returns a function
 * that cancels the wait.
 */
export function afterSilence(timeout: number, onSilence: () => void): () => void {
  let left = timeout;
  let timer: NodeJS.Timeout | undefined;
  let turn: NodeJS.Immediate | undefined;
  const wait = (): void => {
    const next = Math.min(left, step);
    left -= next;
    timer = setTimeout(() => {
      if (left > 0) wait();
      else turn = setImmediate(onSilence); // what has come is read before
    }, next);
  };
  wait();
  return () => {
    clearTimeout(timer);
    clearImmediate(turn);
  };
}

/** Below the kernel's ephemeral ports and below NodePorts, where no program listens. */
const [firstPort, lastPort] = [12_000, 29_999];
const sequences = new WeakMap<LabHost, () => number>();

/**
 * Returns a source port that this program has not used on this host, until all are used. The kernel would sometimes reuse a port,
 * and the packet would match the connection tracking entry of an earlier attempt.
 */
export function freshPort(host: LabHost): number {
  const next = sequences.get(host) ?? portSequence();
  sequences.set(host, next);
  return next();
}

/** Returns ports round-robin from a random start: another program may have used the same host. */
export function portSequence(): () => number {
  let port = randomInt(firstPort, lastPort);
  return () => {
    port = port < lastPort ? port + 1 : firstPort;
    return port;
  };
}

/** A `ProbeResult` before its duration is known. */
export type Outcome = ProbeResult extends infer R ? (R extends unknown ? Omit<R, 'took'> : never) : never;
type Finish = (outcome: Outcome) => void;

const defaultTimeout = 1500;

/**
 * One connection attempt from this process's network namespace; every failure is a result. Has no
 * imports from other packages, because the probe agent must start fast.
 */
export async function probe(request: ProbeRequest): Promise<ProbeResult> {
  const start = performance.now();
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  const close = attempts[request.protocol](request, resolve);
  const stopWaiting = afterSilence(request.timeout ?? defaultTimeout, () => resolve({ status: 'timeout' }));
  const outcome = await promise;
  const took = performance.now() - start;
  stopWaiting();
  close();
  return { ...outcome, took } as ProbeResult;
}

/** Probes until a certain pod answers or the timeout passes; `at` is this machine's CLOCK_MONOTONIC in milliseconds. */
export async function awaitAnswer(request: ProbeRequest, until: AnswerWait): Promise<AwaitedAnswer> {
  const end = monotonic() + until.timeout;
  for (;;) {
    const result = await probe(request);
    const at = monotonic();
    if ((result.status === 'answered' && result.by === until.by) || at >= end) return { result, at };
    if (until.interval > 0) await new Promise((resolve) => setTimeout(resolve, until.interval));
  }
}

/** Unlike `performance.now` it has the same origin in every process. */
function monotonic(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Each starts an attempt, calls `finish` (only the first call counts) and returns what frees its socket. */
const attempts: Readonly<Record<ProbeRequest['protocol'], (request: ProbeRequest, finish: Finish) => () => void>> = {
  http: attemptHttp,
  tcp: attemptTcp,
  udp: attemptUdp,
  connect: attemptConnect,
};

function attemptHttp(request: ProbeRequest, finish: Finish): () => void {
  const options = {
    host: request.address,
    port: request.port,
    path: request.path ?? '/',
    agent: false,
    headers: { connection: 'close' },
    ...(request.source === undefined ? {} : { localAddress: request.source }),
    ...(request.sourcePort === undefined ? {} : { localPort: request.sourcePort }),
  } as const;
  const attempt = httpRequest(options, (response) => {
    const chunks: Buffer[] = [];
    response.on('data', (chunk: Buffer) => chunks.push(chunk));
    response.on('error', (error) => finish(failure(error)));
    response.on('end', () => {
      const headers = Object.entries(response.headers).map(([name, value]) => [name, String(value)]);
      finish(answered(Buffer.concat(chunks).toString(), response.statusCode, Object.fromEntries(headers)));
    });
  });
  attempt.on('error', (error) => finish(failure(error)));
  attempt.end();
  return () => attempt.destroy();
}

function attemptConnect(request: ProbeRequest, finish: Finish): () => void {
  const socket = connectTcp(request);
  socket.on('connect', () => finish(answered('')));
  socket.on('error', (error) => finish(failure(error)));
  return () => socket.destroy();
}

function attemptTcp(request: ProbeRequest, finish: Finish): () => void {
  const socket = connectTcp(request);
  let text = '';
  socket.setEncoding('utf8');
  socket.on('data', (chunk) => {
    text += String(chunk);
    if (text.includes('\n')) finish(answered(text));
  });
  socket.on('end', () => finish(text === '' ? { status: 'empty' } : answered(text)));
  socket.on('error', (error) => finish(failure(error)));
  // An answered probe ends by RST: thousands in TIME_WAIT would use up the local ports.
  return () => (text === '' ? socket.destroy() : socket.resetAndDestroy());
}

export function connectTcp(request: ProbeRequest): Socket {
  return connect({
    host: request.address,
    port: request.port,
    ...(request.source === undefined ? {} : { localAddress: request.source }),
    ...(request.sourcePort === undefined ? {} : { localPort: request.sourcePort }),
  });
}

function attemptUdp(request: ProbeRequest, finish: Finish): () => void {
  const socket = createSocket(request.address.includes(':') ? 'udp6' : 'udp4');
  let isOpen = true;
  socket.on('error', (error) => finish(failure(error)));
  socket.on('message', (message) => finish(answered(message.toString())));
  const send = (): void => {
    // Connected, so that ICMP errors come back to this socket.
    socket.connect(request.port, request.address, (error?: Error) => {
      if (error !== undefined) return finish(failure(error));
      socket.send('who', (error: NodeJS.ErrnoException | null) => {
        // EPERM: this host's kernel stopped the datagram. After a reject an ICMP error follows, after a drop nothing.
        if (error !== null && error.code !== 'EPERM') finish(failure(error));
      });
    });
  };
  socket.bind(
    { port: request.sourcePort ?? 0, ...(request.source === undefined ? {} : { address: request.source }) },
    send,
  );
  return () => {
    if (isOpen) socket.close();
    isOpen = false;
  };
}

export function answered(
  body: string,
  httpStatus?: number,
  headers: Readonly<Record<string, string>> = {},
): ProbeAnswer {
  const echo = tryParseEcho(body);
  return {
    status: 'answered',
    httpStatus,
    headers,
    body,
    by: echo?.pod,
    node: echo?.node,
    seenSource: echo?.source,
    seenSourcePort: echo?.sourcePort,
  };
}

function tryParseEcho(body: string): EchoAnswer | undefined {
  try {
    const value = JSON.parse(body) as Partial<EchoAnswer>;
    return typeof value.pod === 'string' && typeof value.source === 'string' ? (value as EchoAnswer) : undefined;
  } catch {
    return undefined;
  }
}

/** The result that a socket error stands for. */
export function failure(error: Error): Outcome {
  const code = (error as NodeJS.ErrnoException).code ?? error.message;
  switch (code) {
    case 'ECONNREFUSED':
      return { status: 'refused' };
    case 'EPERM':
      return { status: 'dropped' };
    case 'ETIMEDOUT':
      return { status: 'timeout' };
    case 'ECONNRESET':
      return error.message === 'socket hang up' ? { status: 'empty' } : { status: 'reset' };
    case 'EPIPE':
      return { status: 'reset' };
    default:
      return { status: 'unreachable', code };
  }
}

/** Files below `/proc/net` that count the ICMP errors suppressed in a network namespace, for IPv4 and IPv6. */
export const icmpCounterFiles = ['/proc/net/snmp', '/proc/net/snmp6'] as const;

/**
 * Returns the number of ICMP errors suppressed by the rate limits of a network namespace, from the texts of `icmpCounterFiles`.
 * Undefined before Linux 6.3, which does not count them.
 */
export function icmpErrorsHeldBack(text: string): number | undefined {
  const [names = [], values = []] = [...text.matchAll(/^Icmp: (.*)$/gm)].map(([, words = '']) => words.split(' '));
  const v4 = ['OutRateLimitGlobal', 'OutRateLimitHost'].map((name) => values[names.indexOf(name)]);
  const v6 = /^Icmp6OutRateLimitHost\s+(\d+)/m.exec(text)?.[1];
  const known = [...v4, v6].filter((value) => value !== undefined).map(Number);
  return known.length === 0 ? undefined : known.reduce((sum, value) => sum + value, 0);
}
