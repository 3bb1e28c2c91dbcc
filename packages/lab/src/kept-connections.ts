import { createSocket } from 'node:dgram';
import type { Socket } from 'node:net';
import { afterSilence, answered, awaitAnswer, connectTcp, failure, type Outcome } from './probe.ts';
import type { CallHandlers, ProbeExchange, ProberCalls, ProbeRequest, ProbeResult } from './probe-types.ts';

const defaultTimeout = 1500;

/** Handlers of the calls about connections and sockets that stay open. One counter numbers both. */
export function connectionHandlers(): CallHandlers<Omit<ProberCalls, 'probe' | 'sctp'>> {
  const connections = new Map<number, LineReader>();
  const sockets = new Map<number, AskingSocket>();
  let opened = 0;
  return {
    await: ({ probe, until }) => awaitAnswer(probe, until),
    open: async (request) => {
      const start = performance.now();
      const lines = new LineReader(connectTcp(request));
      const first = await lines.next(request.timeout ?? defaultTimeout);
      const outcome = first?.line === undefined ? (first?.end ?? { status: 'timeout' }) : answered(first.line);
      const result = { ...outcome, took: performance.now() - start } as ProbeResult; // an outcome and its duration
      if (first?.line === undefined) {
        lines.socket.destroy();
        return { result };
      }
      connections.set(++opened, lines);
      return { result, connection: opened };
    },
    exchange: async ({ connection, text, timeout }) => {
      const lines = connections.get(connection);
      return { status: lines === undefined ? 'closed' : await exchange(lines, text, timeout) };
    },
    connect: async (request) => {
      sockets.set(++opened, await openAskingSocket(request));
      return { connection: opened };
    },
    ask: async ({ connection, timeout }) => {
      const start = performance.now();
      const outcome = (await sockets.get(connection)?.ask(timeout)) ?? { status: 'unreachable', code: 'EBADF' };
      return { ...outcome, took: performance.now() - start } as ProbeResult; // an outcome and its duration
    },
    close: async ({ connection }) => {
      connections.get(connection)?.socket.destroy();
      sockets.get(connection)?.close();
      connections.delete(connection);
      sockets.delete(connection);
      return {};
    },
  };
}

async function exchange(lines: LineReader, text: string, timeout: number): Promise<ProbeExchange['status']> {
  if (!lines.socket.destroyed) lines.socket.write(`${text}\n`);
  const reply = await lines.next(timeout);
  if (reply === undefined) return 'timeout';
  if (reply.line !== undefined) return reply.line === text ? 'echoed' : 'garbled';
  return reply.end.status === 'reset' ? 'reset' : 'closed';
}

type Line = { readonly line: string } | { readonly line?: undefined; readonly end: Outcome };

/** Splits a socket's input into lines. The end and errors are results too; later reads return them again. */
class LineReader {
  readonly socket: Socket;
  #text = '';
  #end: Outcome | undefined;
  #wake: () => void = () => undefined;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('utf8');
    socket.on('data', (chunk) => {
      this.#text += String(chunk);
      this.#wake();
    });
    socket.on('error', (error) => this.#finish(failure(error)));
    socket.on('close', () => this.#finish({ status: 'empty' }));
  }

  /** Resolves with undefined after `timeout`. */
  async next(timeout: number): Promise<Line | undefined> {
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
          return { line };
        }
        if (this.#end !== undefined) return { end: this.#end };
        if (isSilent) return undefined;
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    } finally {
      stopWaiting();
    }
  }

  #finish(end: Outcome): void {
    this.#end ??= end;
    this.#wake();
  }
}

/** A UDP socket that is connected once or never and sends repeated questions. */
interface AskingSocket {
  /** Sends one datagram and returns the answer or the socket's error. */
  ask(timeout: number): Promise<Outcome>;
  close(): void;
}

/** Connects. Also resolves if that fails: the first `ask` then returns the failure. */
export async function openAskingSocket(request: ProbeRequest): Promise<AskingSocket> {
  const socket = createSocket(request.address.includes(':') ? 'udp6' : 'udp4');
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
