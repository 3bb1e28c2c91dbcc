import { messageOf, millis, systemClock, addressAndPort } from '@switchyard/core';
import { type LabNode, createProber } from '@switchyard/lab';
import { readConntrack, type PacketPath, readTrace, readCounters } from './read-trace.ts';
import { takeTurn } from '../engine/error-pace.ts';
import { startTraceMonitor, type TracedPacket } from './trace-monitor.ts';

type Lines = Promise<readonly string[]>;

/** Limit of the preparation, and again of the packet itself. */
const patience = millis(2_000);
/** Wait after the answer until the kernel has reported everything. */
const quiet = millis(60);

/** Last trace of each node. A node has one trace table, so traces run one after the other. */
const latest = new WeakMap<LabNode, Promise<unknown>>();

/**
 * Sends one packet of a flow again and follows it through `node`'s kernel, whichever proxy programmed it: one line per
 * station (where it came in, changed addresses, left), per rule of nftables or iptables-nft that it matched, per counter of
 * iptables-legacy that rose; then its conntrack entry, its route, and what our own agent says about it where that runs.
 *
 * Makes an nft table and a monitor of its own in the node's namespace and removes both. Never rejects but for `signal`: failed
 * parts are lines. Takes `send`, at most 2 s of it, and some 0.3 s; 5 s and a little at the worst; traces
 * of one node wait for each other.
 */
export async function traceFlow(
  node: LabNode,
  packet: TracedPacket,
  send: () => Promise<unknown>,
  signal: AbortSignal,
): Lines {
  const follow = (): Lines => {
    signal.throwIfAborted(); // hundreds may wait behind each other
    return followed(node, packet, send, signal);
  };
  try {
    return await takeTurn(latest, node, follow);
  } catch (error) {
    signal.throwIfAborted();
    return [`the packet could not be followed on ${node.name}: ${messageOf(error)}`];
  }
}

async function followed(node: LabNode, packet: TracedPacket, send: () => Promise<unknown>, signal: AbortSignal): Lines {
  const counters = await readCounters(node, packet.family);
  const sending: string[] = [];
  const text = await (async () => {
    await using monitor = await startTraceMonitor(node, packet, patience, signal);
    sending.push(...(await sent(send, signal)));
    return await monitor.settled(quiet, signal); // before it is disposed
  })();
  const { request, lines } = story(packet, readTrace(text));
  const [counted, flows, route, agent] = await Promise.all([
    orMessage('counters', counters),
    orMessage('conntrack', () => conntrackLines(node, packet, request)),
    orMessage('route', () => routeLines(node, packet, request)),
    orMessage('agent', () => explainByAgent(node, packet, signal)),
  ]);
  return [...sending, ...lines, ...counted, ...flows, ...route, ...agent];
}

/** Errors of sending; empty if it ended in time, with any answer. */
async function sent(send: () => Promise<unknown>, signal: AbortSignal): Lines {
  const done = send().then(
    () => [],
    (error: unknown) => [`sending failed: ${messageOf(error)}`],
  );
  const ended = new AbortController();
  const late = systemClock.sleep(patience, AbortSignal.any([signal, ended.signal])).then(
    () => ['it had no end within 2 s'],
    () => [],
  );
  const lines = await Promise.race([done, late]);
  ended.abort();
  signal.throwIfAborted();
  return lines;
}

interface Story {
  /** The path of the flow's first packet, if one was seen. */
  readonly request: PacketPath | undefined;
  readonly lines: readonly string[];
}

/** The first packet to the flow's address and the first answer; without one, what the sender began instead. */
function story(packet: TracedPacket, paths: readonly PacketPath[]): Story {
  const isRequest = ({ head }: PacketPath): boolean =>
    head.destination === packet.address && head.destinationPort === packet.port;
  const isOther = ({ head }: PacketPath): boolean => packet.source === undefined || head.source === packet.source;
  const exact = paths.filter(isRequest);
  const request = exact[0] ?? paths.find(isOther);
  const here = `${packet.address} port ${packet.port}/${packet.protocol}`;
  const missing = `no packet to ${here} came through nftables' hooks here`;
  if (request === undefined) return { request, lines: [`${missing}, nor another of this sender`] };
  const reply = paths.find((path) => path !== request && isReplyOf(path, request));
  const lines = [
    ...(exact.length > 0 ? [] : [`${missing}; its socket, or a BPF program before them, led it elsewhere:`]),
    ...request.lines,
    ...(request.end === 'gone' ? ['it went no further'] : []),
    ...(exact.length > 1 ? [`${exact.length - 1} more like it`] : []),
    ...(reply === undefined ? ['no answer passed'] : ['answer:', ...reply.lines]),
  ];
  return { request, lines };
}

/** Compares with the request's first and last addresses. An ICMP error has no ports. */
function isReplyOf({ head }: PacketPath, request: PacketPath): boolean {
  const both = [request.head, request.tail];
  const isBack = both.some(
    ({ source, sourcePort }) => head.destination === source && [sourcePort, 0].includes(head.destinationPort),
  );
  return isBack && (head.sourcePort === 0 || both.some(({ destinationPort }) => head.sourcePort === destinationPort));
}

async function conntrackLines(node: LabNode, packet: TracedPacket, request: PacketPath | undefined): Lines {
  const { exitCode, stdout, stderr } = await node.run('cat', ['/proc/net/nf_conntrack'], { timeout: patience });
  if (exitCode !== 0) return [`conntrack: cannot read /proc/net/nf_conntrack: ${stderr.trim()}`];
  const head = request?.head;
  const found = readConntrack(stdout).filter(
    ({ protocol, source, sourcePort, destination, destinationPort }) =>
      protocol === packet.protocol.toLowerCase() &&
      (head === undefined
        ? destination === packet.address && destinationPort === packet.port
        : source === head.source && sourcePort === head.sourcePort && destination === head.destination),
  );
  if (found.length === 0) return ['conntrack: no entry'];
  return found.slice(0, 3).map(({ text }) => `conntrack: ${text}`);
}

/** Route of the packet's last seen destination. */
async function routeLines(node: LabNode, packet: TracedPacket, request: PacketPath | undefined): Lines {
  const destination = request?.tail.destination ?? packet.address;
  const { stdout, stderr } = await node.run('ip', ['route', 'get', destination], { timeout: patience });
  const answer = stdout.trim() || stderr.trim();
  return [`route: ${answer.split('\n')[0]?.replaceAll(/\s+/g, ' ').trim() ?? ''}`];
}

/** Port of our agent on the node's loopback. */
const metricsPort = 10_249;

/** Explanation of the flow by our agent on this node, one line per line of its answer; empty if another proxy runs. */
async function explainByAgent(node: LabNode, packet: TracedPacket, signal: AbortSignal): Lines {
  const from = packet.source ?? node.addresses[packet.family];
  if (from === undefined) return [];
  const to = `${addressAndPort(packet.address, packet.port)}/${packet.protocol}`;
  const path = `/debug/explain?from=${encodeURIComponent(from)}&to=${encodeURIComponent(to)}`;
  await using prober = await createProber(node, signal);
  const request = { protocol: 'http', address: '127.0.0.1', port: metricsPort, path, timeout: 1000 } as const;
  const answer = await prober.probe(request);
  if (answer.status !== 'answered' || answer.httpStatus !== 200) return [];
  const lines = answer.body.split('\n').filter((line) => line.trim() !== '');
  return lines.map((line) => `agent: ${line}`);
}

/** Returns the lines of some work, or one line with its error. */
export async function orMessage(what: string, work: () => Lines): Lines {
  try {
    return await work();
  } catch (error) {
    return [`${what}: ${messageOf(error)}`];
  }
}
