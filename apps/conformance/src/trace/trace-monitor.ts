import { HostError, millis, systemClock } from '@switchyard/core';
import type { Millis, IpAddress, IpFamily, Protocol } from '@switchyard/core';
import type { LabNode, LabProcess } from '@switchyard/lab';
import { readFile } from 'node:fs/promises';

const beat = millis(10);

/** `nft monitor trace` in a node's namespace, and the table that marks packets for it. Disposing removes both. */
export interface TraceMonitor extends AsyncDisposable {
  /** All it has printed, when nothing more came for `quiet`. */
  settled(quiet: Millis, signal: AbortSignal): Promise<string>;
}

/** Listens first and marks then: the monitor knows all rules but the table's own by their text. `patience` limits the start. */
export async function startTraceMonitor(
  node: LabNode,
  packet: TracedPacket,
  patience: Millis,
  signal: AbortSignal,
): Promise<TraceMonitor> {
  await using stack = new AsyncDisposableStack();
  stack.defer(async () => {
    await node.run('nft', ['delete', 'table', 'inet', traceTable]); // it is not there where it could not be made
  });
  const process = node.spawn('nft', ['monitor', 'trace'], { logName: 'trace' });
  stack.defer(() => process.stop(millis(0)));
  await listening(node, process, patience, signal);
  const made = await node.run('nft', ['-f', '-'], { stdin: traceTableText(packet), timeout: patience });
  if (made.exitCode !== 0) {
    throw new HostError('trace.table', `nft refused the table ${traceTable} on ${node.name}: ${made.stderr.trim()}`);
  }
  const owned = stack.move();
  return {
    settled: async (quiet, inner) => {
      let text = '';
      for (let round = 0; round < 20; round++) {
        await systemClock.sleep(quiet, inner);
        const now = await readFile(process.logFile, 'utf8');
        if (now === text && round > 0) break;
        text = now;
      }
      return text;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Waits until a netlink socket in the namespace has joined the group of traces. */
async function listening(node: LabNode, process: LabProcess, patience: Millis, signal: AbortSignal): Promise<void> {
  const until = systemClock.monotonic() + patience;
  for (;;) {
    const { stdout } = await node.run('cat', ['/proc/net/netlink']);
    if (hasTraceListener(stdout)) return;
    if (process.child.exitCode !== null || systemClock.monotonic() > until) {
      const said = (await readFile(process.logFile, 'utf8')).trim();
      throw new HostError('trace.monitor', `nft monitor trace does not listen on ${node.name}: ${said}`);
    }
    await systemClock.sleep(beat, signal);
  }
}

/** Whether /proc/net/netlink shows a netfilter socket (protocol 12) in the group NFNLGRP_NFTRACE (9). */
export function hasTraceListener(table: string): boolean {
  return table.split('\n').some((line) => {
    const [, protocol, , groups = ''] = line.trim().split(/\s+/);
    return protocol === '12' && (Number.parseInt(groups, 16) & 0x100) !== 0;
  });
}

/** The first packet of a flow to trace. */
export interface TracedPacket {
  readonly family: IpFamily;
  readonly protocol: Protocol;
  /** Source address; undefined: unknown, so packets of a socket that was translated at connect may not be found. */
  readonly source?: IpAddress | undefined;
  readonly address: IpAddress;
  readonly port: number;
}

/** The nft table that a trace makes, and removes again. */
export const traceTable = 'switchyard-trace';

/**
 * Chains that look at the packet after all others of their hook have. Rules of iptables-legacy and BPF programs are not seen by
 * nftables, but what they did to the packet is: its addresses, its mark, whether it still comes.
 */
export const stations: ReadonlyMap<string, string> = new Map([
  ['early-prerouting', 'comes in'],
  ['early-output', 'is sent by the node'],
  ['at-prerouting', 'after prerouting'],
  ['at-output', 'after output'],
  ['at-input', 'is for the node'],
  ['at-forward', 'is forwarded'],
  ['at-postrouting', 'leaves'],
]);

/**
 * The table's text for `nft -f`; what an earlier trace left of it is replaced. Rules only mark packets for tracing, which no
 * other rule can see. Of a TCP connection the first packet of each direction is marked.
 */
export function traceTableText(packet: TracedPacket): string {
  const early = requestRules(packet);
  const replies = replyRules(packet);
  return [
    `table inet ${traceTable} {}`,
    `delete table inet ${traceTable}`,
    `table inet ${traceTable} {`,
    ...chain('early-prerouting', 'prerouting', -500, early),
    // Conntrack (priority -200) assigns a packet to its flow.
    ...chain('reply-prerouting', 'prerouting', -199, replies),
    ...chain('at-prerouting', 'prerouting', -50),
    ...chain('early-output', 'output', -500, [...early, ...ownRules(packet)]),
    ...chain('reply-output', 'output', -199, replies),
    ...chain('at-output', 'output', 300),
    ...chain('at-input', 'input', 300),
    ...chain('at-forward', 'forward', 300),
    ...chain('at-postrouting', 'postrouting', 150),
    '}',
    '',
  ].join('\n');
}

function chain(name: string, hook: string, priority: number, rules: readonly string[] = []): readonly string[] {
  return [
    `  chain ${name} {`,
    `    type filter hook ${hook} priority ${priority};`,
    ...rules.map((rule) => `    ${rule} meta nftrace set 1`),
    '  }',
  ];
}

/** Rules for the flow itself, and for other new flows of its sender: a socket may have been translated before the first packet. */
function requestRules({ family, protocol, source, address, port }: TracedPacket): readonly string[] {
  const ip = ipWord(family);
  const exact = `${ip} daddr ${address} ${protocol.toLowerCase()} dport ${port} ${first(protocol)}`;
  return source === undefined ? [exact] : [exact, `${ip} saddr ${source} ${any(protocol)} ${first(protocol)}`];
}

/** Rules for an unknown source: everything that the node itself sends. */
function ownRules({ family, protocol, source }: TracedPacket): readonly string[] {
  if (source !== undefined) return [];
  return [`meta nfproto ${family.toLowerCase()} ${any(protocol)} ${first(protocol)}`];
}

function replyRules({ family, protocol, source, address, port }: TracedPacket): readonly string[] {
  const original = `ct direction reply ct original ${ipWord(family)}`;
  const answer = protocol === 'TCP' ? 'tcp flags & (syn | rst) != 0' : '';
  const flow = `${any(protocol)} ${original} daddr ${address} ct original proto-dst ${port} ${answer}`;
  const error = `meta l4proto ${family === 'IPv4' ? 'icmp' : 'ipv6-icmp'} ${original} daddr ${address}`;
  if (source === undefined) return [flow, error];
  return [flow, error, `${any(protocol)} ${original} saddr ${source} ${answer}`];
}

function ipWord(family: TracedPacket['family']): string {
  return family === 'IPv4' ? 'ip' : 'ip6';
}

function any(protocol: TracedPacket['protocol']): string {
  return `meta l4proto ${protocol.toLowerCase()}`;
}

function first(protocol: TracedPacket['protocol']): string {
  return protocol === 'TCP' ? 'tcp flags & (syn | ack) == syn' : '';
}
