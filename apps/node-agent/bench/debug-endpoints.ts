/* Prints what the debugging endpoints cost at 10,000 Services with 10 endpoints: node --conditions=@switchyard/source --expose-gc bench/debug-endpoints.ts */
import { createHttpListener } from '@switchyard/core/health';
import { type IpFamily, noopLogger, parseIp, parsePort } from '@switchyard/core';
import { node, service, slice, tableOf, tableOptions } from '@switchyard/core/testing';
import { get } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { debugRoutes } from '../src/http/metrics-routes.ts';
import { router } from '../src/http/route.ts';
import { debugState } from '../src/http/testing/debug-bench.ts';

const services = 10_000;
const endpoints = 10;
const port = 20_249;

function table(ipFamily: IpFamily) {
  const address = (index: number, range: number): string =>
    ipFamily === 'IPv4'
      ? `10.${range + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`
      : `fd00:${range}::${(index >> 16).toString(16)}:${(index & 65_535).toString(16)}`;
  const names = Array.from({ length: services }, (_, index) => `namespace-${Math.floor(index / 100)}/service-${index}`);
  return tableOf(
    {
      services: names.map((name, index) => service(name, { clusterIps: [address(index, 96)] })),
      slices: names.map((name, index) =>
        slice(name, {
          endpoints: Array.from({ length: endpoints }, (_, at) => ({
            ip: address(index * endpoints + at, 128),
            node: 'n2',
          })),
        }),
      ),
      nodes: [node('n1')],
    },
    tableOptions({ ipFamily }),
  );
}

async function measure(path: string): Promise<string> {
  globalThis.gc?.();
  const before = process.memoryUsage();
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const start = performance.now();
  let bytes = 0;
  let mostHeap = 0;
  await new Promise<void>((resolve, reject) => {
    get({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        mostHeap = Math.max(mostHeap, process.memoryUsage().heapUsed);
      });
      response.on('end', resolve);
    }).on('error', reject);
  });
  const milliseconds = performance.now() - start;
  delay.disable();
  const heap = Math.max(0, mostHeap - before.heapUsed) / 1e6;
  return [
    path,
    `${milliseconds.toFixed(1)} ms`,
    `${(bytes / 1e6).toFixed(2)} MB`,
    `longest stop of the loop ${(delay.max / 1e6).toFixed(1)} ms, p99 ${(delay.percentile(99) / 1e6).toFixed(1)} ms`,
    `heap +${heap.toFixed(1)} MB with garbage`,
  ].join(', ');
}

const families: readonly IpFamily[] = ['IPv4', 'IPv6'];
const tables = new Map(families.map((family) => [family, table(family)]));
const target = { ipFamily: 'IPv4', address: parseIp('127.0.0.1'), port: parsePort(port) } as const;
await using server = await createHttpListener().listen(target, router(debugRoutes(debugState({ tables })), noopLogger));
for (let round = 0; round < 2; round++) {
  const last = `namespace-${services / 100 - 1}/service-${services - 1}`;
  for (const path of [
    '/debug/forwarding',
    `/debug/forwarding?service=${last}`,
    '/debug/explain?from=10.1.1.1&to=10.96.39.15:80/TCP',
    '/debug/explain?from=10.1.1.1&to=192.0.2.77:80/TCP',
  ]) {
    process.stdout.write(`${round === 0 ? 'first' : 'again'}: ${await measure(path)}\n`);
  }
}
void server;
