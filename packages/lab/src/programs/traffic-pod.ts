/**
 * A pod's program that sends and answers packets on request by HTTP: echo server, prober and load generator in one.
 *
 *   --pod NAME --node NAME --port PORT --token-digest SHA256 [--http PORT] [--tcp PORT] [--delay-shutdown SECONDS]
 *
 * Takes the calls of `TrafficCalls` on PORT from clients with the token. Exits with 98 when PORT is taken, and with 0 on SIGTERM,
 * after the delay.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { parseArgs } from 'node:util';
import { createServer } from '../lean-http.ts';
import { createTrafficHandlers } from '../traffic-handlers.ts';
import { portTakenExitCode, trafficTokenHeader } from '../traffic-pod.ts';

const { values } = parseArgs({
  options: {
    pod: { type: 'string', default: 'unnamed' },
    node: { type: 'string', default: '' },
    port: { type: 'string', default: '' },
    'token-digest': { type: 'string', default: '' },
    http: { type: 'string' },
    tcp: { type: 'string' },
    'delay-shutdown': { type: 'string', default: '0' },
  },
});
const digest = Buffer.from(values['token-digest'], 'hex');
const handlers = createTrafficHandlers({ pod: values.pod, node: values.node, host: undefined });
const maxBody = 1 << 20;

const server = createServer((request, response) => void serve(request, response));
server.once('error', (error: NodeJS.ErrnoException) => {
  process.stderr.write(`cannot listen on port ${values.port}: ${error.message}\n`);
  process.exit(error.code === 'EADDRINUSE' ? portTakenExitCode : 1);
});
server.listen(Number(values.port));
for (const protocol of ['http', 'tcp'] as const) {
  const port = values[protocol];
  const ports = { http: [], tcp: [], udp: [], [protocol]: [Number(port)] };
  const { failed } = port === undefined ? { failed: [] } : await handlers.listen(ports);
  if (failed.length > 0) throw new Error(`cannot listen: ${failed.join(', ')}`);
}
// A second SIGTERM, with a shorter grace period, does not restart the delay.
process.once('SIGTERM', () => {
  process.on('SIGTERM', () => undefined);
  setTimeout(() => process.exit(0), Number(values['delay-shutdown']) * 1000);
});
process.once('SIGINT', () => process.exit(0));

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { status, body } = await answer(request).catch((error: unknown) => ({ status: 400, body: String(error) }));
  response.setHeader('content-type', typeof body === 'string' ? 'text/plain' : 'application/json');
  if (status !== 200) response.setHeader('connection', 'close'); // the rest of a refused body may be on its way
  response.statusCode = status;
  response.end(typeof body === 'string' ? `${body}\n` : JSON.stringify(body));
}

async function answer(request: IncomingMessage): Promise<{ readonly status: number; readonly body: unknown }> {
  if (!isKnown(request.headers[trafficTokenHeader])) return { status: 403, body: 'the token is missing or wrong' };
  const name = (request.url ?? '').slice(1);
  if (request.method !== 'POST' || !isCall(name))
    return { status: 404, body: `there is no ${request.method} /${name}` };
  const argument: unknown = JSON.parse(await bodyOf(request));
  // The client with the token is the conformance runner, of the same version.
  return { status: 200, body: await (handlers[name] as (argument: unknown) => Promise<unknown>)(argument) };
}

function isKnown(token: unknown): boolean {
  const own = createHash('sha256')
    .update(typeof token === 'string' ? token : '')
    .digest();
  return digest.length === own.length && timingSafeEqual(own, digest);
}

function isCall(name: string): name is keyof typeof handlers {
  return Object.hasOwn(handlers, name);
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) {
    text += chunk as string; // setEncoding makes it text
    if (text.length > maxBody) throw new Error(`the body is longer than ${maxBody} characters`);
  }
  return text;
}
