import { millis, systemClock } from '@switchyard/core';
import { expect, test } from 'vitest';
import {
  createLab,
  createProber,
  type Prober,
  type ProbeRequest,
  type ProbeResult,
  startEchoServer,
} from '../../src/index.ts';

const { signal } = new AbortController();

async function untilAnswered(prober: Prober, request: ProbeRequest): Promise<ProbeResult> {
  for (;;) {
    const result = await prober.probe(request);
    if (result.status === 'answered') return result;
    await systemClock.sleep(millis(50), signal);
  }
}

test.each(['IPv4', 'IPv6'] as const)(
  'a lab of %s only connects its hosts and pods over all protocols',
  async (family) => {
    await using lab = await createLab({ name: 'labone', nodes: 2, ipFamilies: [family] }, signal);
    const [node1, node2] = lab.nodes;
    const [pod1, pod2] = [await lab.addPod(node1!, 'pod1'), await lab.addPod(node2!, 'pod2')];
    for (const host of [node1!, pod2]) startEchoServer(host, { pod: host.name, http: [80], tcp: [81], udp: [82] });
    await using client = await createProber(lab.client, signal);
    await using pod = await createProber(pod1, signal);
    const ports = { http: 80, tcp: 81, udp: 82 };
    for (const [protocol, port] of Object.entries(ports) as [keyof typeof ports, number][]) {
      const toNode = await untilAnswered(client, { protocol, address: node1!.addresses[family]!, port });
      expect(toNode).toMatchObject({ by: 'node1', seenSource: lab.client.addresses[family] });
      const toPod = await untilAnswered(pod, { protocol, address: pod2.addresses[family]!, port });
      expect(toPod).toMatchObject({ by: 'pod2', seenSource: pod1.addresses[family] });
    }
    const other = family === 'IPv4' ? '-6' : '-4';
    const { stdout } = await node1!.run('ip', [other, '-o', 'addr', 'show', 'scope', 'global']);
    expect(stdout).toBe('');
  },
);
