/*
 * Prints what drains cost a gate with many nodes: waits, its CPU and memory, and requests to nodes; none goes to an API server. The nodes are
 * addresses of 127.0.0.0/8, which one other process answers; each has applied a version up to 20 ms after it is there. Run:
 * node --conditions=@switchyard/source packages/drain-gate/bench/many-nodes.ts [NODES]
 * With --kubeconfig FILE [--nodes N] [--pods N] [--minutes N]: requests that a real API server gets, see with-api-server.ts.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type ClusterEvent, noopLogger, parseIp, parsePort, systemClock } from '@switchyard/core';
import { createHttpListener } from '@switchyard/core/health';
import { freePort, MemorySource, node, slice } from '@switchyard/core/testing';
import { runDrainGate } from '../src/run-drain-gate.ts';
import { measureWithApiServer } from './with-api-server.ts';

const longestApply = 20;

/** The other process: answers for all nodes. */
async function beNodes(port: number): Promise<void> {
  let version = 0;
  let requests = 0;
  const server = createServer((request, response) => {
    requests++;
    const query = new URL(request.url ?? '', 'http://node').searchParams;
    const name = request.socket.localAddress ?? '';
    const after = Number(query.get('after') ?? 0);
    reply(response, { name, after, isConnections: request.url?.startsWith('/drain/connections') === true });
  });
  server.keepAliveTimeout = 5000; // as the agents' listener
  const reply = (
    response: ServerResponse,
    { name, after, isConnections }: { readonly name: string; readonly after: number; readonly isConnections: boolean },
  ): void => {
    if (isConnections) return void response.end(JSON.stringify({ node: name, open: { TCP: 0 } }));
    const send = (): void =>
      void response.end(JSON.stringify({ node: name, slicesVersion: Math.max(version, after), failed: [], used: [] }));
    setTimeout(send, Math.random() * longestApply);
  };
  process.on('message', (message: { readonly version: number } | 'count') => {
    if (message === 'count') return void process.send?.({ requests });
    version = message.version;
  });
  server.listen(port, '0.0.0.0', 65_535);
  await once(server, 'listening');
  process.on('disconnect', () => process.exit());
  process.send?.('ready');
}

function addressOf(index: number): string {
  return `127.${1 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`;
}

function podEvent(index: number, resourceVersion: number, isEnding: boolean): ClusterEvent {
  const own = { ip: `10.244.${index >> 8}.${index & 255}`, node: 'n0', terminating: isEnding };
  const item = slice('shop/cart', { name: `cart-${index}`, endpoints: [own] });
  return { kind: 'upsert', resource: 'EndpointSlice', resourceVersion, item };
}

async function measure(nodes: number): Promise<void> {
  const nodePort = await freePort('0.0.0.0');
  const port = await freePort('127.0.0.1');
  const child = fork(fileURLToPath(import.meta.url), ['nodes', String(nodePort)]);
  await once(child, 'message');
  const stop = new AbortController();
  const source = new MemorySource([
    { kind: 'replace', resource: 'EndpointSlice', resourceVersion: 1, items: [] },
    {
      kind: 'replace',
      resource: 'Node',
      items: Array.from({ length: nodes }, (_, index) => node(`n${index}`, { addresses: [addressOf(index)] })),
    },
  ]);
  const gate = runDrainGate(
    {
      source,
      listener: createHttpListener(),
      target: { ipFamily: 'IPv4', address: parseIp('127.0.0.1'), port },
      nodePort: parsePort(nodePort),
      failures: 3,
      clock: systemClock,
      logger: noopLogger,
    },
    stop.signal,
  );
  const requests = async (): Promise<number> => {
    child.send('count');
    const [{ requests: count }] = (await once(child, 'message')) as [{ readonly requests: number }];
    return count;
  };
  console.log(`${nodes} nodes, each applies within ${longestApply} ms`);
  let version = 10;
  for (const pods of [1, 1, 10, 100]) {
    for (let pod = 0; pod < pods; pod++) source.push([podEvent(pod, ++version, false)]);
    await new Promise((resolve) => setTimeout(resolve, 200));
    const [before, cpu] = [await requests(), process.cpuUsage()];
    const waits = await Promise.all(
      Array.from({ length: pods }, async (_, pod) => {
        const begin = performance.now();
        source.push([podEvent(pod, ++version, true)]);
        child.send({ version });
        const url = `http://127.0.0.1:${port}/drain?pod=10.244.${pod >> 8}.${pod & 255}&seconds=60`;
        const response = await fetch(url);
        if (response.status !== 200) throw new Error(await response.text());
        await response.text();
        return performance.now() - begin;
      }),
    );
    const { user, system } = process.cpuUsage(cpu);
    const sorted = waits.toSorted((a, b) => a - b);
    const median = sorted[Math.floor(sorted.length / 2)] ?? 0;
    console.log(
      `${pods} pods at once: wait ${median.toFixed(0)} ms (longest ${sorted.at(-1)?.toFixed(0)}), CPU of the gate ${((user + system) / 1000).toFixed(0)} ms, ` +
        `requests to nodes ${(await requests()) - before}, RSS ${(process.memoryUsage.rss() / 1e6).toFixed(0)} MB`,
    );
  }
  stop.abort();
  await gate;
  child.kill();
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    kubeconfig: { type: 'string' },
    nodes: { type: 'string', default: '5000' },
    pods: { type: 'string', default: '30' },
    minutes: { type: 'string', default: '5' },
  },
});
const [role = values.nodes, port = ''] = positionals;
if (role === 'nodes') await beNodes(Number(port));
else if (values.kubeconfig === undefined) await measure(Number(role));
else {
  const { kubeconfig, pods, minutes } = values;
  await measureWithApiServer({ kubeconfig, nodes: Number(role), pods: Number(pods), minutes: Number(minutes) });
}
