/*
 * Simulates agents of many nodes: each follows its resources at a real API server as kube-proxy does, and answers a drain gate. An agent has an
 * address of 127.0.0.0/8. Runs as a child of with-api-server.ts: simulated-agents.ts KUBECONFIG NODES PORT.
 */
import { createServer, type ServerResponse } from 'node:http';
import { type ClientHttp2Session, connect } from 'node:http2';
import { once } from 'node:events';
import { systemClock } from '@switchyard/core';
import { type ApiServerConnection, kubeconfigConnection } from '@switchyard/core/kubernetes';

const longestApply = 20;
/** Mean of the 5 to 10 minutes of kube-proxy's watches: always the same, so that windows of one length have equal numbers of them. */
const watchSeconds = 450;
const { signal } = new AbortController();

/** Watches of one agent, as in kube-proxy 1.36. */
function paths(node: string): readonly string[] {
  return [
    '/apis/discovery.k8s.io/v1/endpointslices?labelSelector=%21service.kubernetes.io%2Fheadless',
    '/api/v1/services?labelSelector=%21service.kubernetes.io%2Fservice-proxy-name',
    `/api/v1/nodes?fieldSelector=metadata.name%3D${node}`,
    '/apis/networking.k8s.io/v1/servicecidrs?',
  ];
}

/** The address of an agent, or the index of an address. */
export function addressOf(index: number): string {
  return `127.${1 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`;
}

function indexOf(address: string): number {
  const [, a = 0, b = 0, c = 0] = address.split('.').map(Number);
  return ((a - 1) << 16) | (b << 8) | c;
}

/** HTTP/2 connections with room for one more stream each. */
class Sessions {
  readonly #connection: ApiServerConnection;
  #last: ClientHttp2Session | undefined;
  #room = 0;

  constructor(connection: ApiServerConnection) {
    this.#connection = connection;
  }

  /** The session of one more watch, which keeps its place. */
  async next(): Promise<ClientHttp2Session> {
    if (this.#last === undefined || this.#room === 0) {
      const { url, tls } = this.#connection;
      this.#last = connect(url, { ca: tls.ca, cert: tls.cert, key: tls.key });
      this.#last.on('error', (error) => console.error('connection:', error.message));
      await once(this.#last, 'remoteSettings');
      this.#room = this.#last.remoteSettings.maxConcurrentStreams ?? 100;
    }
    this.#room--;
    return this.#last;
  }
}

interface Watching {
  readonly session: ClientHttp2Session;
  readonly path: string;
  readonly authorization: string;
  readonly onVersion: (version: number) => void;
  readonly onSynced: () => void;
  /** Duration of the first watch. */
  readonly seconds: number;
}

/** Follows one resource for ever, the first time for `seconds`. */
async function follow({ session, path, authorization, onVersion, onSynced, ...first }: Watching): Promise<never> {
  let version = 0;
  let { seconds } = first;
  for (;;) {
    const from =
      version === 0 ? '&sendInitialEvents=true&resourceVersionMatch=NotOlderThan' : `&resourceVersion=${version}`;
    const target = `${path}&watch=true&allowWatchBookmarks=true${from}&timeoutSeconds=${seconds}`;
    const stream = session.request({ ':path': target, accept: 'application/json', authorization });
    let isFine = false;
    let rest = '';
    stream.on('response', (headers) => (isFine = headers[':status'] === 200));
    stream.on('error', (error) => console.error(path, error.message));
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      const text = rest + chunk;
      for (const [, found] of text.matchAll(/"resourceVersion":"(\d+)"/g)) version = Math.max(version, Number(found));
      if (text.includes('k8s.io/initial-events-end')) onSynced();
      rest = text.slice(-40); // a match may be cut
      onVersion(version);
    });
    await once(stream, 'close');
    if (isFine) seconds = watchSeconds;
    else {
      version = 0;
      await systemClock.sleep(1000 as never, signal);
    }
  }
}

async function main(kubeconfig: string, nodes: number, port: number): Promise<void> {
  const connection = await kubeconfigConnection(kubeconfig, systemClock);
  const authorization = (await connection.credentials.authorization(signal)) ?? '';
  const sessions = new Sessions(connection);
  const versions = Array.from({ length: nodes }, () => 0);
  const waiting = new Map<number, Set<() => void>>();
  const synced = new Set<string>();
  answerGate(port, versions, waiting);
  for (let index = 0; index < nodes; index++) {
    for (const [which, path] of paths(`bench-${index}`).entries()) {
      const seconds = 1 + ((4 * index + which) % watchSeconds); // so that the later ones end evenly
      const onVersion = (version: number): void => {
        if (!path.includes('endpointslices') || version <= (versions[index] ?? 0)) return;
        versions[index] = version;
        for (const wake of waiting.get(index) ?? []) wake();
      };
      const key = `${index} ${path}`;
      const onSynced = (): void => void synced.add(key);
      void follow({ session: await sessions.next(), path, authorization, onVersion, onSynced, seconds });
      while (4 * index - synced.size > 400) await systemClock.sleep(10 as never, signal);
    }
  }
  while (synced.size < 4 * nodes) await systemClock.sleep(100 as never, signal);
  process.send?.('synced');
}

/** Each node answers up to 20 ms after it has the version of the question, as if it had applied that. */
function answerGate(port: number, versions: readonly number[], waiting: Map<number, Set<() => void>>): void {
  const server = createServer((request, response) => {
    const index = indexOf(request.socket.localAddress ?? '');
    if (request.url?.startsWith('/drain/connections') === true)
      return void response.end('{"node":"bench","connections":0}');
    const query = new URL(request.url ?? '', 'http://node').searchParams;
    const after = Number(query.get('after') ?? 0);
    const wakes = waiting.get(index) ?? new Set();
    waiting.set(index, wakes);
    const late = setTimeout(() => finish(), 1000 * Number(query.get('seconds') ?? 0));
    const look = (): void => {
      if ((versions[index] ?? 0) >= after) setTimeout(finish, Math.random() * longestApply);
    };
    const finish = (): void => {
      clearTimeout(late);
      wakes.delete(look);
      reply(response, versions[index] ?? 0);
    };
    wakes.add(look);
    look();
  });
  server.keepAliveTimeout = 5000; // as the agents' listener
  server.listen(port, '0.0.0.0', 65_535);
}

function reply(response: ServerResponse, slicesVersion: number): void {
  if (!response.writableEnded) response.end(JSON.stringify({ node: 'bench', slicesVersion, failed: [], used: [] }));
}

const [program = '', kubeconfig = '', nodes = '', port = ''] = process.argv.slice(1);
if (program.endsWith('simulated-agents.ts')) {
  process.on('disconnect', () => process.exit());
  await main(kubeconfig, Number(nodes), Number(port));
}
