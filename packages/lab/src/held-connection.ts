import type { Socket } from 'node:net';
import { answered, connectTcp, failure, type Outcome } from './probe.ts';
import type { ProbeExchange, ProbeRequest } from './probe-types.ts';
import { afterSilence } from './silence.ts';

/** A TCP connection to an echo server that stays open between exchanges. */
export interface HeldConnection {
  /** Sends a line and waits until it has come back. */
  exchange(text: string, timeout: number): Promise<ProbeExchange>;
  close(): void;
}

/** Result of opening a connection; `connection` is undefined without an answer. */
export interface Opening {
  readonly outcome: Outcome;
  readonly connection: HeldConnection | undefined;
}

const defaultTimeout = 1500;

/** Connects, waits for the echo object and keeps the connection. */
export async function openConnection(request: ProbeRequest): Promise<Opening> {
  const socket = connectTcp(request);
  const lines = new LineReader(socket);
  const first = await lines.next(request.timeout ?? defaultTimeout);
  if (first.status === 'line') {
    const connection: HeldConnection = {
      exchange: (text, wait) => exchange(socket, lines, text, wait),
      close: () => socket.destroy(),
    };
    return { outcome: answered(first.line), connection };
  }
  socket.destroy();
  return { outcome: outcomeOf(first), connection: undefined };
}

function outcomeOf(end: Exclude<Line, { status: 'line' }>): Outcome {
  switch (end.status) {
    case 'broken':
      return failure(end.error);
    case 'closed':
      return { status: 'empty' };
    case 'timeout':
      return end;
  }
}

async function exchange(socket: Socket, lines: LineReader, text: string, timeout: number): Promise<ProbeExchange> {
  if (!socket.destroyed) socket.write(`${text}\n`);
  const reply = await lines.next(timeout);
  switch (reply.status) {
    case 'line':
      return { status: reply.line === text ? 'echoed' : 'garbled' };
    case 'broken':
      return { status: failure(reply.error).status === 'reset' ? 'reset' : 'closed' };
    default:
      return { status: reply.status };
  }
}

type Line =
  | { readonly status: 'line'; readonly line: string }
  | { readonly status: 'closed' }
  | { readonly status: 'timeout' }
  | { readonly status: 'broken'; readonly error: Error };

/** Splits a socket's input into lines. The end and errors are results too; later reads return them again. */
class LineReader {
  #text = '';
  #end: Line | undefined;
  #wake: () => void = () => undefined;

  constructor(socket: Socket) {
    socket.setEncoding('utf8');
    socket.on('data', (chunk) => this.#add(String(chunk)));
    socket.on('error', (error) => this.#finish({ status: 'broken', error }));
    socket.on('close', () => this.#finish({ status: 'closed' }));
  }

  async next(timeout: number): Promise<Line> {
    let isSilent = false;
    const stopWaiting = afterSilence(timeout, () => {
      isSilent = true;
      this.#wake();
    });
    try {
      for (;;) {
        const end = this.#text.indexOf('\n');
        if (end >= 0) {
          const line = this.#text.slice(0, end);
          this.#text = this.#text.slice(end + 1);
          return { status: 'line', line };
        }
        if (this.#end !== undefined) return this.#end;
        if (isSilent) return { status: 'timeout' };
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    } finally {
      stopWaiting();
    }
  }

  #add(chunk: string): void {
    this.#text += chunk;
    this.#wake();
  }

  #finish(end: Line): void {
    this.#end ??= end;
    this.#wake();
  }
}
