/*
 * Prints one table: what following 10,000 Services and 10,000 EndpointSlices of 10 endpoints costs a
 * process, from a fake API server on loopback. Each row is a fresh process (reflector-client.ts), bundled
 * as the agent is: running the sources directly adds 40 MB for Node's TypeScript loader.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Exchange, initialEventsEnd, ScriptedApiServer } from '../src/testing/scripted-api-server.ts';

const services = 10_000;
const endpoints = 10;
const runs = 5;

/** Fields of an object that a proxy does not read: about 500 bytes, the size of `managedFields`. */
const managedFields = [
  {
    manager: 'kube-controller-manager',
    operation: 'Update',
    apiVersion: 'v1',
    time: '2026-11-21T01:57:32Z',
    fieldsType: 'FieldsV1',
    fieldsV1: Object.fromEntries(
      ['clusterIP', 'internalTrafficPolicy', 'ports', 'sessionAffinity', 'selector', 'type', 'ipFamilies'].map(
        (field) => [`f:${field}`, { '.': {}, [`k:{"${field}":80,"protocol":"TCP"}`]: {} }],
      ),
    ),
  },
];

function metadata(index: number, suffix: string, labels: Readonly<Record<string, string>>): object {
  const namespace = `namespace-${Math.floor(index / 100)}`;
  const uid = `76883e9e-95eb-4c89-a6bd-${String(index).padStart(12, '0')}`;
  return { name: `service-${index}${suffix}`, namespace, uid, resourceVersion: `${index + 1}`, labels, managedFields };
}

function service(index: number): object {
  const clusterIP = `10.${96 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`;
  return {
    kind: 'Service',
    apiVersion: 'v1',
    metadata: metadata(index, '', { app: `service-${index}` }),
    spec: {
      ports: [{ name: 'http', protocol: 'TCP', port: 80, targetPort: 8080 }],
      selector: { app: `service-${index}` },
      clusterIP,
      clusterIPs: [clusterIP],
      type: 'ClusterIP',
      sessionAffinity: 'None',
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      internalTrafficPolicy: 'Cluster',
    },
    status: { loadBalancer: {} },
  };
}

function slice(index: number): object {
  return {
    kind: 'EndpointSlice',
    apiVersion: 'discovery.k8s.io/v1',
    metadata: metadata(index, '-abcde', { 'kubernetes.io/service-name': `service-${index}` }),
    addressType: 'IPv4',
    endpoints: Array.from({ length: endpoints }, (_, at) => endpoint(index * endpoints + at)),
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
  };
}

function endpoint(number: number): object {
  return {
    addresses: [`10.${128 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`],
    conditions: { ready: true, serving: true, terminating: false },
    nodeName: `worker-node-${number % 100}.example.internal`,
    zone: `region-1-zone-${number % 3}`,
    targetRef: { kind: 'Pod', namespace: 'default', name: `pod-${number}`, uid: `uid-${number}` },
  };
}

/** Writes no faster than the client reads. */
async function write(exchange: Exchange, text: string): Promise<void> {
  if (!exchange.write(text).needsDrain) return;
  await exchange.drained;
}

async function watchList(exchange: Exchange, objects: Iterable<object>): Promise<void> {
  exchange.stream();
  for (const object of objects) await write(exchange, `${JSON.stringify({ type: 'ADDED', object })}\n`);
  exchange.send(initialEventsEnd('100000'));
}

function page(exchange: Exchange, make: (index: number) => object): void {
  const from = Number(exchange.query.get('continue') ?? 0);
  const to = Math.min(from + Number(exchange.query.get('limit')), services);
  const items = Array.from({ length: to - from }, (_, at) => make(from + at));
  const next = to < services ? { continue: `${to}` } : {};
  exchange.answer(200, { kind: 'List', metadata: { resourceVersion: '100000', ...next }, items });
}

function* all(make: (index: number) => object): Iterable<object> {
  for (let index = 0; index < services; index++) yield make(index);
}

/** How the server answers: WatchList, or refusing it. */
type Mode = 'WatchList' | 'pages of 500';

async function serve(mode: Mode): Promise<ScriptedApiServer> {
  const server = await ScriptedApiServer.listen();
  const resources: Readonly<Record<string, ((index: number) => object) | undefined>> = {
    '/api/v1/services': service,
    '/apis/discovery.k8s.io/v1/endpointslices': slice,
    '/api/v1/nodes': undefined,
    '/apis/networking.k8s.io/v1/servicecidrs': undefined,
  };
  for (const [path, make] of Object.entries(resources)) {
    server.serve(path, (exchange) => {
      const { query } = exchange;
      if (make === undefined) exchange.stream().send(initialEventsEnd('1'));
      else if (!query.has('watch')) page(exchange, make);
      else if (!query.has('sendInitialEvents')) exchange.stream();
      else if (mode === 'WatchList') void watchList(exchange, all(make));
      else exchange.answer(422, { kind: 'Status', message: 'sendInitialEvents is forbidden' });
    });
  }
  return server;
}

interface Figures {
  readonly wall: number;
  readonly cpu: number;
  readonly peak: number;
  readonly heap: number;
}

async function bundle(into: string): Promise<string> {
  const client = fileURLToPath(new URL('reflector-client.ts', import.meta.url));
  const file = join(into, 'client.mjs');
  const options = ['--bundle', '--platform=node', '--format=esm', '--external:@kubernetes/*', '--log-level=warning'];
  const args = [client, ...options, '--conditions=@switchyard/source', `--outfile=${file}`];
  const [code] = (await once(spawn('esbuild', args, { stdio: 'inherit' }), 'close')) as [number];
  if (code !== 0) throw new Error(`esbuild ended with ${code}`);
  return file;
}

async function run(client: string, url: URL, flags: readonly string[]): Promise<Figures> {
  const args = ['--expose-gc', ...flags, client, url.href];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], env: { MALLOC_ARENA_MAX: '1' } });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const [code] = (await once(child, 'close')) as [number];
  if (code !== 0) throw new Error(`the client ended with ${code}`);
  return JSON.parse(output) as Figures;
}

const median = (numbers: readonly number[]): number => numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? 0;

async function row(client: string, mode: Mode, flags: readonly string[]): Promise<string> {
  await using server = await serve(mode);
  const all: Figures[] = [];
  for (let round = 0; round < runs; round++) all.push(await run(client, server.url, flags));
  const column = (pick: (figures: Figures) => number, width: number): string =>
    median(all.map(pick)).toFixed(0).padStart(width);
  const name = `own, ${mode}${flags.length > 0 ? ', semi-space 1' : ''}`;
  return `${name.padEnd(32)}${column((f) => f.wall, 9)}${column((f) => f.cpu, 9)}${column((f) => f.peak, 13)}${column((f) => f.heap, 16)}\n`;
}

const folder = await mkdtemp(join(tmpdir(), 'swy-bench-'));
const size = `${services} Services, ${services} EndpointSlices x ${endpoints} endpoints`;
try {
  const client = await bundle(folder);
  process.stdout.write(`${size}; median of ${runs} processes\n`);
  process.stdout.write(`${'client'.padEnd(32)}  wall ms   CPU ms  peak RSS MB  heap after GC\n`);
  for (const mode of ['WatchList', 'pages of 500'] as const) {
    for (const flags of [[], ['--max-semi-space-size=1']]) process.stdout.write(await row(client, mode, flags));
  }
} finally {
  await rm(folder, { recursive: true });
}
