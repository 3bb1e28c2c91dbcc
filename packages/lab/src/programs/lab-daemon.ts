/**
 * Owns a cluster in the background: builds it from the `UpOptions` given as JSON, tells its parent over the IPC channel,
 * and keeps it until SIGTERM or SIGINT. While it is still building, the loss of its parent ends it too.
 */
import { messageOf } from '@switchyard/core';
import type { DaemonMessage } from '../cli/up.ts';
import type { UpOptions } from '../cli/options.ts';
import { checkAgent } from '../agent-program.ts';
import { startCluster } from '../lab-cluster.ts';

const options = JSON.parse(process.argv[2] ?? '{}') as UpOptions;
const building = new AbortController();
const stopped = Promise.withResolvers<void>();
let isReady = false;

process.once('disconnect', () => {
  if (!isReady) stop('the command that started the lab has gone');
});
process.once('SIGTERM', () => stop('SIGTERM'));
process.once('SIGINT', () => stop('SIGINT'));

try {
  if (options.agents) await checkAgent();
  await using cluster = await startCluster({ ...options, onProgress: progress }, building.signal);
  if (options.agents) {
    progress('starting the node agents');
    await cluster.startAgents({ proxyMode: options.proxyMode }, building.signal);
  }
  const { url, kubeconfig, insideUrl, insideKubeconfig } = cluster;
  isReady = true;
  await tell({ kind: 'ready', record: { url, kubeconfig, insideUrl, insideKubeconfig } });
  await stopped.promise;
} catch (error) {
  const message = messageOf(error);
  process.stderr.write(`${error instanceof Error ? error.stack : message}\n`);
  await tell({ kind: 'failed', message });
  process.exitCode = 1;
}
process.exit(); // whatever a failed start may have left open

function stop(reason: string): void {
  building.abort(new Error(`stopped: ${reason}`));
  stopped.resolve();
}

function progress(text: string): void {
  void tell({ kind: 'progress', text });
}

/** Resolves when the message has left, or nobody is there to hear it. */
async function tell(message: DaemonMessage): Promise<void> {
  if (!process.connected) return;
  await new Promise<void>((resolve) => process.send?.(message, () => resolve()));
}
