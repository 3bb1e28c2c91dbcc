import type { DaemonSet } from '@switchyard/core/kubernetes';
import { createProber, type LabHost } from '@switchyard/lab';
import { vi } from 'vitest';

/** Shows the plug-in which proxy runs; the agents of the lab are no pods. */
export function agentDaemonSet(): DaemonSet {
  const labels = { 'app.kubernetes.io/name': 'switchyard' };
  const containers = [{ name: 'agent', image: 'switchyard/agent-nftables:0.1.0', command: ['sleep', '600'] }];
  return {
    metadata: { name: 'switchyard', namespace: 'kube-system' },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
  };
}

/** Waits until a pod answers at port 80 of an address. */
export async function untilAnswered(from: LabHost, address: string, signal: AbortSignal): Promise<void> {
  await using prober = await createProber(from, signal);
  const probe = { protocol: 'http', address, port: 80, path: '/', timeout: 500 } as const;
  await vi.waitUntil(async () => (await prober.probe(probe)).status === 'answered', { timeout: 20_000 });
}
