import type { IncomingMessage, ServerResponse } from 'node:http';
import { type HttpAnswer, type HttpStream, textAnswer } from './http-answer.ts';
import type { HttpConnection } from './http-connection.ts';
import type { HttpHandler, HttpRequest } from './http-handler.ts';
import type { FairTurns } from './fair-turns.ts';

/** Longest body of a request; PUT /debug/flags/v needs a few bytes. */
const maxBodyBytes = 64 * 1024;

/** One request of a client and its answer. */
export interface HttpExchange {
  readonly connection: HttpConnection;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly turns: FairTurns;
}

/** Answers a request: in the same turn if it has no body and the handler answers at once. Never rejects. */
export async function answerRequest(exchange: HttpExchange, handler: HttpHandler): Promise<void> {
  const { connection, request, response } = exchange;
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const body = hasBody(request) ? await readBody(request) : { text: '' };
  if (body === 'gone') return void connection.cut();
  const reply = body === 'tooLong' ? tooLong : handler(parse(request, body.text), gone.signal);
  const given = reply instanceof Promise ? await reply : reply;
  if (gone.signal.aborted) return;
  connection.beginSending();
  if ('body' in given) return sendAnswer(exchange, given);
  await sendStream(exchange, given, gone.signal);
}

function sendAnswer({ request, response }: HttpExchange, { status, headers, body }: HttpAnswer): void {
  response.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body) });
  response.end(request.method === 'HEAD' ? undefined : body);
}

async function sendStream(exchange: HttpExchange, reply: HttpStream, gone: AbortSignal): Promise<void> {
  const { connection, request, response, turns } = exchange;
  response.writeHead(reply.status, reply.headers);
  if (request.method === 'HEAD') return void response.end();
  try {
    for await (const piece of reply.pieces) {
      await send(response, piece);
      if (gone.aborted) return;
      connection.beginSending(); // the client has received something
      await turns.next(connection.place);
      if (gone.aborted) return;
    }
    response.end();
  } catch {
    response.destroy(); // the client must not take a part for the whole; the producer of the pieces logs the error
  }
}

/** Closes the connection, since the rest of the body is still arriving. */
const tooLong: HttpAnswer = textAnswer(413, `the body is longer than ${maxBodyBytes} bytes\n`, { Connection: 'close' });

function parse(request: IncomingMessage, body: string): HttpRequest {
  const { method = 'GET', url = '/' } = request;
  const at = url.indexOf('?');
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, Array.isArray(value) ? value[0] : value]),
  );
  return {
    method,
    path: at < 0 ? url : url.slice(0, at),
    query: new URLSearchParams(at < 0 ? '' : url.slice(at)),
    headers,
    body,
  };
}

/** Resolves when the kernel has accepted the piece, or the client has disconnected. */
function send(response: ServerResponse, piece: string | Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    response.write(piece, () => resolve());
  });
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
}

async function readBody(request: IncomingMessage): Promise<{ readonly text: string } | 'tooLong' | 'gone'> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > maxBodyBytes) return 'tooLong';
      chunks.push(chunk);
    }
  } catch {
    return 'gone';
  }
  return { text: Buffer.concat(chunks).toString('utf8') };
}
