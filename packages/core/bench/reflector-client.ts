/* The measured process of reflector.ts: brings a ClusterState in sync, then prints its own figures as JSON. */
import { readFileSync } from 'node:fs';
import { defaultTls, fixedCredentials } from '../src/kubernetes/api-server-connection.ts';
import { KubernetesSource } from '../src/kubernetes/kubernetes-source.ts';
import { noopLogger } from '../src/base/log.ts';
import { nodeName } from '../src/model/records/keys.ts';
import { ClusterState } from '../src/model/state/cluster-state.ts';
import { systemClock } from '../src/base/time.ts';

const [, , url = ''] = process.argv;
const name = nodeName('worker-node-1.example.internal');
const source = new KubernetesSource({
  connection: { url: new URL(url), tls: defaultTls, credentials: fixedCredentials(undefined) },
  nodes: { kind: 'one', name },
  clock: systemClock,
  random: Math.random,
  log: noopLogger,
});
const state = new ClusterState({ nodeName: name });
const cpu = process.cpuUsage();
const start = performance.now();
for await (const batch of source.batches(AbortSignal.timeout(60_000))) {
  state.apply(batch);
  if (state.isInSync) break;
}
const wall = performance.now() - start;
const { system, user } = process.cpuUsage(cpu);
const peak = Number(/VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) / 1024;
globalThis.gc?.();
const heap = process.memoryUsage().heapUsed / 1024 / 1024;
if (state.services.size === 0) throw new Error('nothing arrived in time');
process.stdout.write(JSON.stringify({ wall, cpu: (system + user) / 1000, peak, heap }));
