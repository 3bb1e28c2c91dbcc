/**
 * Owns a cluster in the background: builds it from the `UpOptions` given as JSON, reports to its parent over the IPC channel,
 * and keeps it until SIGTERM or SIGINT. Until it is ready, the end of its parent ends it too.
 */
import { messageOf } from '@switchyard/core';
import type { DaemonMessage } from '../cli/commands.ts';
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
  await send({ kind: 'ready', record: { url, kubeconfig, insideUrl, insideKubeconfig } });
  await stopped.promise;
} catch (error) {
  const message = messageOf(error);
  process.stderr.write(`${error instanceof Error ? error.stack : message}\n`);
  await send({ kind: 'failed', message });
  process.exitCode = 1;
}
process.exit(); // a failed start may have left handles open

function stop(reason: string): void {
  building.abort(new Error(`stopped: ${reason}`));
  stopped.resolve();
}

function progress(text: string): void {
  void send({ kind: 'progress', text });
}

/** Sends a message to the parent, if it still runs. Resolves when the message has left. */
async function send(message: DaemonMessage): Promise<void> {
  if (!process.connected) return;
  await new Promise<void>((resolve) => process.send?.(message, () => resolve()));
}
