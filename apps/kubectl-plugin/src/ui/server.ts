import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { messageOf } from '@switchyard/core';
import { askAgent, askLines } from '../access/ask.ts';
import type { Agent } from '../access/agents.ts';
import type { ForwardingAnswer } from '../commands/table.ts';
import { page } from './page.ts';

/** Agents whose data the page shows, and where to report problems. */
export interface UiOptions {
  readonly agents: readonly Agent[];
  readonly warn: (text: string) => void;
}

/** A Service port in one family, by node. */
interface ServiceRow {
  readonly key: string;
  readonly ipFamily: string;
  readonly byNode: Record<
    string,
    { readonly status: string; readonly all: number; readonly cluster: number; readonly local: number }
  >;
}

/** The agents' limit for one request. */
const streamSeconds = 3600;

/** Serves the page and its data; only for this machine, if it listens on loopback. */
export function createUiServer({ agents, warn }: UiOptions, signal: AbortSignal): Server {
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      if (response.headersSent) return response.end();
      response.writeHead(502, { 'Content-Type': 'text/plain' }).end(`${messageOf(error)}\n`);
    });
  });
  const answer = async ({ url, headers }: IncomingMessage, response: ServerResponse): Promise<void> => {
    // A page of another site may not read it by a name that leads here.
    if (!/^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?$/.test(headers.host ?? ''))
      return void response.writeHead(403).end();
    if (url === '/') return void response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' }).end(page);
    if (url === '/api/status')
      return json(response, await all(agents, warn, (agent) => askAgent(agent, '/debug/status', { signal })));
    if (url === '/api/services') return json(response, await servicesOf(agents, warn, signal));
    if (url === '/api/losses') return streamLosses(agents, { response, warn }, signal);
    response.writeHead(404).end();
  };
  signal.addEventListener('abort', () => {
    server.close();
    server.closeAllConnections();
  });
  return server;
}

function json(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(value));
}

/** Answers of the agents that have one, in their order. */
async function all<T>(
  agents: readonly Agent[],
  warn: UiOptions['warn'],
  ask: (agent: Agent) => Promise<T>,
): Promise<readonly T[]> {
  const answers = await Promise.allSettled(agents.map(ask));
  return answers.flatMap((one) => {
    if (one.status === 'fulfilled') return [one.value];
    warn(messageOf(one.reason));
    return [];
  });
}

async function servicesOf(
  agents: readonly Agent[],
  warn: UiOptions['warn'],
  signal: AbortSignal,
): Promise<readonly ServiceRow[]> {
  const rows = new Map<string, ServiceRow>();
  const answers = await all(agents, warn, async (agent) => {
    const { families } = await askAgent<ForwardingAnswer>(agent, '/debug/forwarding', { signal });
    return { node: agent.node, families };
  });
  for (const { node, families } of answers) {
    for (const { ipFamily, services } of families) {
      for (const { key, status, endpoints = [] } of services) {
        const row = rows.get(`${key} ${ipFamily}`) ?? { key, ipFamily, byNode: {} };
        rows.set(`${key} ${ipFamily}`, row);
        const usable = (policy: string): number => endpoints.filter(({ usedBy }) => usedBy.includes(policy)).length;
        row.byNode[node] = {
          status: status.kind,
          all: endpoints.length,
          cluster: usable('Cluster'),
          local: usable('Local'),
        };
      }
    }
  }
  return [...rows.values()].toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

/** Server-sent events, until the browser leaves. */
async function streamLosses(
  agents: readonly Agent[],
  { response, warn }: { readonly response: ServerResponse; readonly warn: UiOptions['warn'] },
  signal: AbortSignal,
): Promise<void> {
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
  response.write(':\n\n');
  const watching = AbortSignal.any([signal, gone.signal]);
  const follow = async (agent: Agent): Promise<void> => {
    for await (const line of askLines(agent, `/debug/losses?format=json&seconds=${streamSeconds}`, watching)) {
      response.write(`data: ${JSON.stringify(line)}\n\n`);
    }
  };
  const ends = await Promise.allSettled(agents.map(follow));
  for (const end of ends) if (end.status === 'rejected' && !watching.aborted) warn(messageOf(end.reason));
  response.end(); // the browser connects again
}
