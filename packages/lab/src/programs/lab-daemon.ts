/**
 * Owns a cluster in the background: builds it from the `UpOptions` given as JSON, tells its parent over the IPC channel,
 * and keeps it until SIGTERM or SIGINT. While it is still building, the loss of its parent ends it too.
 */
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
    await cluster.startAgents({}, building.signal);
  }
  const { url, kubeconfig, insideUrl, insideKubeconfig } = cluster;
  isReady = true;
  tell({ kind: 'ready', record: { url, kubeconfig, insideUrl, insideKubeconfig } });
  await stopped.promise;
} catch (error) {
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(`${error instanceof Error ? error.stack : message}\n`);
  tell({ kind: 'failed', message });
  process.exitCode = 1;
}
if (process.connected) process.disconnect();

function stop(reason: string): void {
  building.abort(new Error(`stopped: ${reason}`));
  stopped.resolve();
}

function progress(text: string): void {
  tell({ kind: 'progress', text });
}

function tell(message: DaemonMessage): void {
  if (process.connected) process.send?.(message, () => undefined);
}
