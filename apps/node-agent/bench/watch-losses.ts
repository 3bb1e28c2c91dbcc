/*
 * Prints what a request to /debug/losses costs at 0, 1,000 and 10,000 drops a second: CPU of the agent beside one that is not asked,
 * and the kernel's time for each drop. Needs root; programs only network namespaces that it makes itself. Run:
 * node --conditions=@switchyard/source apps/node-agent/bench/watch-losses.ts
 */
import { readdirSync, readFileSync } from 'node:fs';
import { apiResources } from '@switchyard/core/kubernetes';
import { millis, systemClock } from '@switchyard/core';
import { type LabNode, startCluster, waitForAgents } from '@switchyard/lab';
import { enableRunStats } from '@switchyard/native/testing';

const rates = [0, 1_000, 10_000];
const time = millis(10_000);
const { signal } = new AbortController();

/** Sends datagrams to an address at a rate, from as many ports as a resolver's clients have, until it is killed. */
const sender = `
  const [address, rate] = process.argv.slice(1);
  const dgram = require('node:dgram');
  const sockets = Array.from({ length: 50 }, () => dgram.createSocket('udp4').on('error', () => undefined));
  let sent = 0;
  const begin = performance.now();
  setInterval(() => {
    const due = ((performance.now() - begin) / 1000) * Number(rate);
    for (; sent < due; sent++) sockets[sent % 50].send('x', 80, address, () => undefined);
  }, 5);
`;

/** CPU milliseconds of all threads of a process. */
function cpuOf(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const read = (thread: string): number =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
  return threads.reduce((sum, thread) => sum + read(thread), 0) / 1e6;
}

/** Runs and nanoseconds of the agent's program, by the descriptor it has open. */
function programOf(pid: number): { readonly runs: number; readonly time: number } {
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    const text = readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8');
    const [, ns] = /run_time_ns:\s+(\d+)/.exec(text) ?? [];
    const [, runs] = /run_cnt:\s+(\d+)/.exec(text) ?? [];
    if (ns !== undefined && runs !== undefined) return { runs: Number(runs), time: Number(ns) };
  }
  return { runs: 0, time: 0 };
}

interface Row {
  readonly drops: number;
  readonly agent: number;
  readonly kernel: number;
}

async function measure(node: LabNode, pid: number, isWatched: boolean): Promise<Row> {
  const url = 'http://127.0.0.1:10249/debug/losses?seconds=60&format=json';
  const watching = isWatched ? node.spawn('curl', ['--no-buffer', '--silent', url], { logName: 'watch' }) : undefined;
  await systemClock.sleep(millis(2_000), signal);
  const [cpu, program] = [cpuOf(pid), programOf(pid)];
  await systemClock.sleep(time, signal);
  const [cpuAfter, after] = [cpuOf(pid), programOf(pid)];
  await watching?.stop(millis(0));
  const seconds = time / 1000;
  return {
    drops: (after.runs - program.runs) / seconds,
    agent: (cpuAfter - cpu) / seconds,
    kernel: (after.time - program.time) / 1e6 / seconds,
  };
}

using _ = enableRunStats();
await using cluster = await startCluster({ name: 'watch', nodes: 1, ipFamilies: ['IPv4'] }, signal);
const [node] = cluster.lab.nodes as [LabNode];
const agent = cluster.startAgent(node);
await waitForAgents(cluster.lab, [agent], signal);
const metadata = { name: 'empty', namespace: 'default' };
const made = await cluster.api.create(
  apiResources.services,
  { metadata, spec: { ports: [{ port: 80, protocol: 'UDP' }] } },
  signal,
);
const pod = await cluster.lab.addPod(node, 'sender');
await systemClock.sleep(millis(15_000), signal); // the agent's start is over
console.log('drops/s  watched  runs/s  agent ms/s  kernel ms/s  % of a core');
for (const rate of rates) {
  const sending = pod.spawn(process.execPath, ['-e', sender, made.spec?.clusterIP ?? '', String(rate)], {
    logName: 'sender',
  });
  for (const isWatched of [false, true]) {
    const { drops, agent: cpu, kernel } = await measure(node, agent.pid, isWatched);
    const cells = [
      rate,
      isWatched,
      drops.toFixed(0),
      cpu.toFixed(1),
      kernel.toFixed(1),
      ((cpu + kernel) / 10).toFixed(2),
    ];
    console.log(cells.map((cell, index) => String(cell).padStart([7, 7, 6, 10, 11, 11][index] ?? 0)).join('  '));
  }
  await sending.stop(millis(0));
}
await agent.stop();
