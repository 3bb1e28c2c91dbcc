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
import { gzipSync } from 'node:zlib';
import { type Exchange, initialEventsEnd, ScriptedApiServer } from '../src/testing/scripted-api-server.ts';

const services = 10_000;
const endpoints = 10;
const runs = 5;
const chunkSize = 65_536;

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

/** How the server answers. The client lists where WatchList is refused. */
interface Mode {
  readonly name: string;
  readonly hasWatchList: boolean;
  readonly hasGzip: boolean;
}

const modes: readonly Mode[] = ['WatchList', 'list'].flatMap((name) =>
  [false, true].map((hasGzip) => ({
    name: hasGzip ? `${name}, gzip` : name,
    hasWatchList: name === 'WatchList',
    hasGzip,
  })),
);

/** The body of all objects, compressed as by the API server: at level 1. */
function bodyOf(make: (index: number) => object, { hasWatchList, hasGzip }: Mode): Buffer {
  const objects = Array.from({ length: services }, (_, index) => make(index));
  const items = objects.map((object) => ({ ...object, kind: undefined, apiVersion: undefined })); // as by the API server
  const list = { kind: 'List', metadata: { resourceVersion: '100000' }, items };
  const events = [...objects.map((object) => ({ type: 'ADDED', object })), initialEventsEnd('100000')];
  const text = hasWatchList ? events.map((event) => `${JSON.stringify(event)}\n`).join('') : JSON.stringify(list);
  return hasGzip ? gzipSync(text, { level: 1 }) : Buffer.from(text);
}

/** Writes no faster than the client reads. */
async function send(exchange: Exchange, body: Buffer, { hasWatchList, hasGzip }: Mode): Promise<void> {
  exchange.stream(hasGzip ? { 'content-encoding': 'gzip' } : {});
  for (let at = 0; at < body.length; at += chunkSize) {
    if (exchange.write(body.subarray(at, at + chunkSize)).needsDrain) await exchange.drained;
  }
  if (!hasWatchList) exchange.end();
}

/** Resolves with the server, and how many bytes it sends to one client. */
async function serve(mode: Mode): Promise<{ readonly server: ScriptedApiServer; readonly bytes: number }> {
  const server = await ScriptedApiServer.listen();
  const resources: Readonly<Record<string, Buffer | undefined>> = {
    '/api/v1/services': bodyOf(service, mode),
    '/apis/discovery.k8s.io/v1/endpointslices': bodyOf(slice, mode),
    '/api/v1/nodes': undefined,
    '/apis/networking.k8s.io/v1/servicecidrs': undefined,
  };
  for (const [path, body] of Object.entries(resources)) {
    server.serve(path, (exchange) => {
      const { query } = exchange;
      if (body === undefined) exchange.stream().send(initialEventsEnd('1'));
      else if (!query.has('watch')) void send(exchange, body, mode);
      else if (!query.has('sendInitialEvents')) exchange.stream();
      else if (mode.hasWatchList) void send(exchange, body, mode);
      else exchange.answer(422, { kind: 'Status', message: 'sendInitialEvents is forbidden' });
    });
  }
  return { server, bytes: Object.values(resources).reduce((sum, body) => sum + (body?.length ?? 0), 0) };
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
  const { server, bytes } = await serve(mode);
  await using _ = server;
  const all: Figures[] = [];
  for (let round = 0; round < runs; round++) all.push(await run(client, server.url, flags));
  const column = (pick: (figures: Figures) => number, width: number): string =>
    median(all.map(pick)).toFixed(0).padStart(width);
  const name = `own, ${mode.name}${flags.length > 0 ? ', semi-space 1' : ''}`;
  return `${name.padEnd(32)}${column((f) => f.wall, 9)}${column((f) => f.cpu, 9)}${column((f) => f.peak, 13)}${column((f) => f.heap, 16)}${(bytes / 1e6).toFixed(1).padStart(10)}\n`;
}

const folder = await mkdtemp(join(tmpdir(), 'swy-bench-'));
const size = `${services} Services, ${services} EndpointSlices x ${endpoints} endpoints`;
try {
  const client = await bundle(folder);
  process.stdout.write(`${size}; median of ${runs} processes\n`);
  process.stdout.write(`${'client'.padEnd(32)}  wall ms   CPU ms  peak RSS MB  heap after GC  MB sent\n`);
  for (const mode of modes) {
    for (const flags of [[], ['--max-semi-space-size=1']]) process.stdout.write(await row(client, mode, flags));
  }
} finally {
  await rm(folder, { recursive: true });
}
