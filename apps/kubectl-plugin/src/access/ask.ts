import { HostError } from '@switchyard/core';
import type { Agent } from './agents.ts';
import { linesOf } from './lines.ts';
import { reach } from './reach.ts';

/** Fetches a JSON answer of an agent. Rejects with `HostError` that says what came back. */
export async function askAgent<Answer>(
  { node, url }: Agent,
  path: string,
  { method = 'GET', signal }: { readonly method?: string; readonly signal: AbortSignal },
): Promise<Answer> {
  const response = await open({ node, url }, path, { method, signal });
  return (await response.json()) as Answer;
}

/** The lines of a streamed answer, parsed as JSON. Rejects as `askAgent`. */
export async function* askLines<Line>(agent: Agent, path: string, signal: AbortSignal): AsyncGenerator<Line, void> {
  const response = await open(agent, path, { method: 'GET', signal });
  if (response.body === null) return;
  for await (const line of linesOf(response.body.pipeThrough(new TextDecoderStream()))) yield JSON.parse(line) as Line;
}

async function open(
  { node, url }: Agent,
  path: string,
  { method, signal }: { readonly method: string; readonly signal: AbortSignal },
): Promise<Response> {
  const response = await reach(
    `${url}${path}`,
    { method, signal },
    (why) => new HostError('agent.unreachable', `cannot reach the agent of ${node} at ${url}: ${why}`),
  );
  if (response.ok) return response;
  const text = (await response.text()).trim().split('\n')[0] ?? '';
  const next = response.status === 404 ? '; is this pod an agent of Switchyard, and new enough?' : '';
  throw new HostError('agent.refused', `the agent of ${node} answered ${response.status} to ${path}: ${text}${next}`);
}
