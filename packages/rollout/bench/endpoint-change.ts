import { readFileSync } from 'node:fs';
import {
  apiResources,
  createProber,
  type LabCluster,
  type LabProcess,
  type Prober,
  startCluster,
  startEchoServer,
} from '@switchyard/lab';
import { createFillers, createFlip, endpointsPerService, flipEndpoint } from './big-cluster.ts';
import { textTable } from '../src/report/result-table.ts';
import { percentile } from './percentile.ts';

// From the API server's acknowledgement of an EndpointSlice write to the first connection that lands at the new
// endpoint, through the real agent and the real kernel; beside kube-proxy 1.36.2 in nftables mode, measured the
// same way on a machine of the same kind (default of minSyncPeriod replaced by 10 ms there).

interface Figures {
  readonly services: number;
  readonly coldStart: number;
  readonly changes: readonly number[];
  readonly cpuPerChange: number;
  readonly rssAfterSync: number;
  readonly rssAfterChanges: number;
}

const kubeProxy: Readonly<
  Record<
    number,
    { readonly p50: number; readonly p99: number; readonly rss: string; readonly cold: number; readonly cpu: number }
  >
> = {
  100: { p50: 27, p99: 40, rss: '60 / 68', cold: 640, cpu: 30 },
  1000: { p50: 209, p99: 233, rss: '86 / 112', cold: 880, cpu: 225 },
  5000: { p50: 1480, p99: 2004, rss: '161-172 / 281-294', cold: 5500, cpu: 1536 },
};

const changes = 60;
const port = 8080;

async function measure(services: number, signal: AbortSignal): Promise<Figures> {
  await using cluster = await startCluster({ name: 'bench', nodes: 1, ipFamilies: ['IPv4'] }, signal);
  const [node] = cluster.lab.nodes;
  if (node === undefined) throw new Error('the lab has no node');
  const pods = await Promise.all(['a', 'b'].map((name) => cluster.lab.addPod(node, name)));
  const addresses = pods.map((pod) => pod.addresses.IPv4 ?? '');
  for (const pod of pods) startEchoServer(pod, { pod: pod.name, tcp: [port] });
  const client = await cluster.lab.addPod(node, 'prober');
  await using prober = await createProber(client, signal);
  await createFillers(cluster.api, services, signal);
  const clusterIp = await createFlip(cluster.api, addresses[0] ?? '', signal);

  const startedAt = performance.now();
  const agent = cluster.startAgent(node);
  await untilAnsweredBy(prober, { clusterIp, pod: 'a', agent });
  const coldStart = performance.now() - startedAt;
  await new Promise((resolve) => setTimeout(resolve, 2000));
  const rssAfterSync = rssOf(agent.pid);
  const cpuBefore = cpuOf(agent.pid);
  const samples = await flip(cluster, { prober, clusterIp, addresses, agent }, signal);
  const cpuPerChange = (cpuOf(agent.pid) - cpuBefore) / changes;
  return { services, coldStart, changes: samples, cpuPerChange, rssAfterSync, rssAfterChanges: rssOf(agent.pid) };
}

interface FlipContext {
  readonly prober: Prober;
  readonly clusterIp: string;
  readonly addresses: readonly string[];
  readonly agent: LabProcess;
}

async function flip(cluster: LabCluster, context: FlipContext, signal: AbortSignal): Promise<readonly number[]> {
  const samples: number[] = [];
  for (let change = 1; change <= changes; change++) {
    const target = change % 2;
    const slice = await cluster.api.get(apiResources.endpointSlices, { namespace: 'default', name: 'flip' }, signal);
    await cluster.api.update(
      apiResources.endpointSlices,
      { ...slice, endpoints: [flipEndpoint(context.addresses[target] ?? '')] },
      signal,
    );
    const acknowledged = performance.now();
    await untilAnsweredBy(context.prober, {
      clusterIp: context.clusterIp,
      pod: target === 0 ? 'a' : 'b',
      agent: context.agent,
    });
    samples.push(performance.now() - acknowledged);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return samples;
}

/** Connects again and again until `pod` answers; fails after 30 s or when the agent has ended. */
async function untilAnsweredBy(
  prober: Prober,
  wanted: { readonly clusterIp: string; readonly pod: string; readonly agent: LabProcess },
): Promise<void> {
  const until = performance.now() + 30_000;
  for (;;) {
    const result = await prober.probe({ protocol: 'tcp', address: wanted.clusterIp, port: 80, timeout: 500 });
    if (result.status === 'answered' && result.by === wanted.pod) return;
    if (performance.now() > until || wanted.agent.child.exitCode !== null) {
      throw new Error(`pod ${wanted.pod} never answered (last: ${result.status}); see ${wanted.agent.logFile}`);
    }
  }
}

/** Resident memory of a process in MB. */
function rssOf(pid: number): number {
  const line = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1] ?? Number.NaN) / 1024;
}

/** CPU milliseconds a process and its ended children have used; the kernel counts in 10 ms. */
function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index] ?? 0), 0) * 10;
}

function row(figures: Figures): readonly string[] {
  const reference = kubeProxy[figures.services];
  const ms = (value: number): string => (value < 10 ? value.toFixed(1) : value.toFixed(0));
  const beside = (value: string, other: string | number | undefined): string => `${value}  (${other ?? '-'})`;
  return [
    `${figures.services} x ${endpointsPerService}`,
    beside(ms(percentile(figures.changes, 0.5)), reference?.p50),
    beside(ms(percentile(figures.changes, 0.99)), reference?.p99),
    beside(ms(figures.cpuPerChange), reference?.cpu),
    beside(ms(figures.coldStart), reference?.cold),
    beside(`${figures.rssAfterSync.toFixed(0)} / ${figures.rssAfterChanges.toFixed(0)}`, reference?.rss),
  ];
}

async function main(): Promise<void> {
  const sizes = process.argv.slice(2).map(Number);
  const head = [
    'services',
    'change p50 ms',
    'p99 ms',
    'CPU ms/change',
    'cold start ms',
    'RSS MB, synced / after changes',
  ];
  const rows: (readonly string[])[] = [head];
  for (const services of sizes.length > 0 ? sizes : [100, 1000, 5000]) {
    console.log(`measuring ${services} services ...`);
    rows.push(row(await measure(services, new AbortController().signal)));
  }
  console.log(
    `\nAPI write acknowledged to changed answer, ${changes} changes; kube-proxy 1.36.2 nftables in parentheses`,
  );
  console.log(textTable(rows));
}

await main();
