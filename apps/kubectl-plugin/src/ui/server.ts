import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type Clock, messageOf, systemClock } from '@switchyard/core';
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
    if (url === '/api/events') return streamEvents(agents, { response, warn }, signal);
    response.writeHead(url === '/favicon.ico' ? 204 : 404).end();
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

/** Losses and changes of endpoints as server-sent events, until the browser leaves. */
async function streamEvents(
  agents: readonly Agent[],
  { response, warn }: { readonly response: ServerResponse; readonly warn: UiOptions['warn'] },
  signal: AbortSignal,
): Promise<void> {
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
  response.write(':\n\n');
  const watching = AbortSignal.any([signal, gone.signal]);
  const follow = async (agent: Agent, onClock: ReturnType<typeof newClock>, path: string): Promise<void> => {
    for await (const line of askLines<AgentLine>(agent, path, watching)) {
      if (!response.write(`data: ${JSON.stringify(onClock(line))}\n\n`))
        await once(response, 'drain', { signal: watching });
    }
  };
  const follows = agents.flatMap((agent) => {
    const onClock = newClock(systemClock);
    return [`/debug/losses?format=json&seconds=${streamSeconds}`, `/debug/changes?seconds=${streamSeconds}`].map(
      (path) => follow(agent, onClock, path),
    );
  });
  const ends = await Promise.allSettled(follows);
  for (const end of ends) if (end.status === 'rejected' && !watching.aborted) warn(messageOf(end.reason));
  response.end(); // the browser connects again
}

/** A line of an agent; `time` is of its node's clock, RFC 3339. */
interface AgentLine {
  readonly time: string;
}

/**
 * Moves the times of a node's lines to this machine's clock, so that all nodes share one. The smallest
 * difference seen is the distance of the clocks; the error is the time of that line's way, some milliseconds.
 */
export function newClock(clock: Pick<Clock, 'now'>): (line: AgentLine) => AgentLine {
  let apart = Number.POSITIVE_INFINITY;
  return (line) => {
    const time = Date.parse(line.time);
    apart = Math.min(apart, clock.now() - time);
    return { ...line, time: new Date(time + apart).toISOString() };
  };
}
