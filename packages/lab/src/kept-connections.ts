import { isIPv6, type Socket } from 'node:net';
import { createSocket } from 'node:dgram';
import { afterSilence, answered, connectTcp, failure, type Outcome } from './probe.ts';
import type { ProbeExchange, ProbeRequest } from './probe-types.ts';

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

/** A UDP socket that is connected once or never and sends repeated questions. */
export interface AskingSocket {
  /** Sends one datagram and returns the answer or the socket's error. */
  ask(timeout: number): Promise<Outcome>;
  close(): void;
}

/** Connects. Also resolves if that fails: the first `ask` then returns the failure. */
export async function openAskingSocket(request: ProbeRequest): Promise<AskingSocket> {
  const socket = createSocket(isIPv6(request.address) ? 'udp6' : 'udp4');
  let isOpen = true;
  /** Error of the socket itself; it stays for all later questions. */
  let broken: Error | undefined;
  let tell: (outcome: Outcome) => void = () => undefined;
  const connected = Promise.withResolvers<void>();
  socket.on('error', (error) => {
    // ECONNREFUSED concerns one datagram; any other error concerns the socket.
    if ((error as NodeJS.ErrnoException).code !== 'ECONNREFUSED') broken = error;
    connected.resolve(); // where it cannot be bound
    tell(failure(error));
  });
  const { address, port, isUnconnected = false } = request;
  socket.on('message', (message, from) => {
    if (!isUnconnected || (from.address === address && from.port === port)) tell(answered(message.toString()));
  });
  const source = request.source === undefined ? {} : { address: request.source };
  socket.bind({ port: request.sourcePort ?? 0, ...source }, () => {
    if (isUnconnected) return connected.resolve();
    socket.connect(port, address, (error?: Error) => {
      broken = error;
      connected.resolve();
    });
  });
  await connected.promise;
  return {
    ask: async (timeout) => {
      if (broken !== undefined) return failure(broken);
      const { promise, resolve } = Promise.withResolvers<Outcome>();
      tell = resolve;
      const stopWaiting = afterSilence(timeout, () => resolve({ status: 'timeout' }));
      const sent = (error: NodeJS.ErrnoException | null): void => {
        if (error !== null && error.code !== 'EPERM') resolve(failure(error));
      };
      if (isUnconnected) socket.send('who', port, address, sent);
      else socket.send('who', sent);
      return promise.finally(stopWaiting);
    },
    close: () => {
      if (isOpen) socket.close();
      isOpen = false;
    },
  };
}
