import { readFileSync } from 'node:fs';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { noopLogger, systemClock } from '@switchyard/core';
import { defaultTls, fixedCredentials, KubernetesSource, type NodeScope } from '@switchyard/core/kubernetes';
import type { JsonObject } from '../../../src/apiserver/json.ts';
import { type ApiServer, type ApiServerOptions, startApiServer } from '../../../src/apiserver/server.ts';

/** A document as it came over the wire: tests look wherever they like. */
export type Wire = ReturnType<typeof JSON.parse>;

/** A complete answer. `body` is parsed when it is JSON. */
export interface Reply {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
  readonly body: Wire;
}

/** A watch stream being collected. */
export interface OpenWatch {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  /** Parsed lines so far. */
  readonly events: Wire[];
  /** Raw chunks so far. */
  readonly chunks: string[];
  /** Resolves when at least `count` events have come. */
  readonly until: (count: number) => Promise<void>;
  /** `clean` with the terminating chunk, `cut` without. */
  readonly ended: Promise<'clean' | 'cut'>;
  readonly close: () => void;
}

/** A listening server with shortcuts for requests. */
export interface Harness extends AsyncDisposable {
  readonly server: ApiServer;
  readonly url: string;
  send(method: string, target: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Reply>;
  get(target: string, headers?: Readonly<Record<string, string>>): Promise<Reply>;
  patch(target: string, kind: 'merge' | 'strategic' | 'json', body: unknown): Promise<Reply>;
  watch(target: string, headers?: Readonly<Record<string, string>>): Promise<OpenWatch>;
  /** A Service of one port in namespace default; fails when it cannot be created. */
  service(name: string, more?: { readonly metadata?: object; readonly spec?: object }): Promise<Wire>;
}

/** Services of namespace default. */
export const services = '/api/v1/namespaces/default/services';

/** Starts a server on a free port of 127.0.0.1. */
export async function startHarness(options: ApiServerOptions = {}): Promise<Harness> {
  const server = await startApiServer(options);
  const { url } = await server.listen({ host: '127.0.0.1', port: 0 });
  const send: Harness['send'] = (method, target, body, headers = {}) =>
    exchange(url, { method, target, body, headers });
  const types = { merge: 'merge-patch', strategic: 'strategic-merge-patch', json: 'json-patch' };
  return {
    server,
    url,
    send,
    get: (target, headers = {}) => send('GET', target, undefined, headers),
    patch: (target, kind, body) => send('PATCH', target, body, { 'content-type': `application/${types[kind]}+json` }),
    watch: (target, headers = {}) => openWatch(url, target, headers),
    service: async (name, more = {}) => {
      const spec = { selector: { app: name }, ports: [{ port: 80 }], ...more.spec };
      const reply = await send('POST', services, { metadata: { name, ...more.metadata }, spec });
      if (reply.status !== 201) throw new Error(`creating ${name}: ${reply.text}`);
      return reply.body;
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

/** The agent's source of cluster state, at a server. */
export function sourceAt(url: string, nodes: NodeScope): KubernetesSource {
  return new KubernetesSource({
    connection: { url: new URL(url), tls: defaultTls, credentials: fixedCredentials(undefined) },
    nodes,
    clock: systemClock,
    random: Math.random,
    log: noopLogger,
  });
}

interface Exchange {
  readonly method: string;
  readonly target: string;
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;
}

function exchange(url: string, { method, target, body, headers }: Exchange): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const length = text === undefined ? {} : { 'content-length': String(Buffer.byteLength(text)) };
    const typed = body === undefined ? headers : { 'content-type': 'application/json', ...length, ...headers };
    const outgoing = httpRequest(new URL(target, url), { method, headers: typed }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, body: tryParse(text) });
      });
    });
    outgoing.on('error', reject);
    outgoing.end(text);
  });
}

function openWatch(url: string, target: string, headers: Readonly<Record<string, string>>): Promise<OpenWatch> {
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest(new URL(target, url), { headers }, (response) => {
      const events: Wire[] = [];
      const chunks: string[] = [];
      let rest = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        chunks.push(chunk);
        const lines = (rest + chunk).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) events.push(JSON.parse(line));
      });
      response.on('error', () => undefined);
      const ended = new Promise<'clean' | 'cut'>((settle) => {
        response.on('close', () => settle(response.complete ? 'clean' : 'cut'));
      });
      const until = async (count: number): Promise<void> => {
        for (let round = 0; events.length < count; round++) {
          if (round > 1_500)
            throw new Error(`waited for ${count} events, got ${JSON.stringify(events).slice(0, 2000)}`);
          await sleep(5);
        }
      };
      const close = (): void => void outgoing.destroy();
      resolve({ status: response.statusCode ?? 0, headers: response.headers, events, chunks, until, ended, close });
    });
    outgoing.on('error', reject);
    outgoing.end();
  });
}

/** The types and names of watch events, as `ADDED web`. */
export function summary(events: readonly Wire[]): readonly string[] {
  return events.map((event) => [event.type, event.object.metadata?.name].filter(Boolean).join(' '));
}

/** A fixture of `test/fixtures/apiserver-1.36`. */
export function fixture(name: string): Wire {
  return JSON.parse(readFileSync(new URL(`../../fixtures/apiserver-1.36/${name}`, import.meta.url), 'utf8'));
}

/** Without nulls: a field that is null reads as absent. */
export function withoutNulls(value: Wire): Wire {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value as JsonObject).filter(([, item]) => item !== null);
  return Object.fromEntries(entries.map(([key, item]) => [key, withoutNulls(item)]));
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
