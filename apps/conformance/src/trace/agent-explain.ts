import { addressAndPort } from '@switchyard/core';
import { createProber, type LabNode } from '@switchyard/lab';
import type { TracedPacket } from './trace-table.ts';

/** Port of our agent on the node's loopback. */
const metricsPort = 10_249;

/** Explanation of the flow by our agent on this node, one line per line of its answer; empty if another proxy runs. */
export async function explainByAgent(
  node: LabNode,
  packet: TracedPacket,
  signal: AbortSignal,
): Promise<readonly string[]> {
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
