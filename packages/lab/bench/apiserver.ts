// Times the API server with 5,000 Services x 10 endpoints. A plain script, since vitest's module runner slows the
// code under measurement: node --conditions=@switchyard/source packages/lab/bench/apiserver.ts
import { apiResources } from '@switchyard/core/kubernetes';
import { createApiClient } from '../src/lab-cluster.ts';
import type { JsonObject } from '../src/apiserver/json.ts';
import { endpointSlices } from '../src/apiserver/resources/endpoint-slices.ts';
import { services } from '../src/apiserver/resources/services.ts';
import { startApiServer } from '../src/apiserver/server.ts';

const options = { isDryRun: false, fieldValidation: 'Strict' } as const;
const signal = AbortSignal.timeout(120_000);
const serviceCount = 5_000;

function endpoints(service: number): readonly JsonObject[] {
  return Array.from({ length: 10 }, (_, index) => ({
    addresses: [`10.${(service >> 8) & 255}.${service & 255}.${index + 1}`],
    conditions: { ready: true, serving: true, terminating: false },
    nodeName: `node${index % 5}`,
    zone: 'z1',
  }));
}

async function timed(title: string, count: number, action: (index: number) => Promise<void> | void): Promise<void> {
  const times: number[] = [];
  for (let index = 0; index < count; index++) {
    const start = performance.now();
    await action(index);
    times.push(performance.now() - start);
  }
  const mean = times.reduce((sum, time) => sum + time, 0) / count;
  times.sort((a, b) => a - b);
  const at = (share: number): string => (times[Math.floor((count - 1) * share)] ?? 0).toFixed(2);
  process.stdout.write(`${title}: mean ${mean.toFixed(2)} ms, median ${at(0.5)}, p99 ${at(0.99)} (n=${count})\n`);
}

await using server = await startApiServer();
const { url } = await server.listen({ host: '127.0.0.1', port: 0 });
await using client = createApiClient({ url });

await timed('create a Service and its slice, no HTTP', serviceCount, (index) => {
  const spec = { selector: { app: `s${index}` }, ports: [{ name: 'http', port: 80, targetPort: 8080 }] };
  server.registry.create(services, 'default', { metadata: { name: `s${index}` }, spec }, options);
  const metadata = { name: `s${index}-1`, labels: { 'kubernetes.io/service-name': `s${index}` } };
  const ports = [{ name: 'http', port: 8080, protocol: 'TCP' }];
  const slice = { metadata, addressType: 'IPv4', endpoints: endpoints(index), ports };
  server.registry.create(endpointSlices, 'default', slice, options);
});
await timed('create a Service over HTTP', 1_000, async (index) => {
  await client.create(
    apiResources.services,
    { metadata: { name: `h${index}` }, spec: { ports: [{ port: 80 }] } },
    signal,
  );
});
await timed('list all slices over HTTP', 5, async () => {
  await client.list(apiResources.endpointSlices, {}, signal);
});

let seen = (): void => undefined;
const aborter = new AbortController();
const watching = (async () => {
  for await (const event of client.watch(apiResources.endpointSlices, {}, aborter.signal)) if (event.kind) seen();
})();
await new Promise<void>((resolve) => (seen = resolve));
await new Promise((resolve) => setTimeout(resolve, 200));
await timed('change one slice over HTTP until a watcher has it', 1_000, async (index) => {
  const arrived = new Promise<void>((resolve) => (seen = resolve));
  const body = { endpoints: endpoints(serviceCount + index) };
  const name = `s${index}-1`;
  await Promise.all([client.patch(apiResources.endpointSlices, { name }, { kind: 'merge', body }, signal), arrived]);
});
aborter.abort();
await watching;
process.stdout.write(
  `resident memory, server and client in one process: ${Math.round(process.memoryUsage.rss() / 1e6)} MB\n`,
);
