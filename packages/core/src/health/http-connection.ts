import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { Millis } from '../base/time.ts';
import type { ConnectionPool, PooledConnection, ClientPlace, FairTurns } from './connection-pool.ts';

/** Number of bytes of input that wait for their turn, over all connections that share it. */
export class HeldInput {
  readonly #limit: number;
  #bytes = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Whether the limit is exceeded; a client that sends far ahead is disconnected then. */
  get isFull(): boolean {
    return this.#bytes > this.#limit;
  }

  add(bytes: number): void {
    this.#bytes += bytes;
  }
}

/** Limits and schedule that connections share. */
interface HttpConnectionOptions {
  readonly place: ClientPlace;
  readonly pool: ConnectionPool;
  readonly turns: FairTurns;
  readonly held: HeldInput;
  /** Longest time without progress while a client receives an answer. */
  readonly patience: Millis;
}

/** Longest piece of input that is parsed in one turn, in bytes. */
const sliceLength = 4096;
const endOfHeader = '\r\n\r\n';
const nothing = Buffer.alloc(0);

/**
 * Connection between a socket and Node's HTTP server. Without it, the server would parse and answer all that a client sends,
 * at once and without a bound. The server gets one request at a time: the next one after the kernel has accepted the answer
 * to the one before, in a separate turn. Until then the socket is not read: at most one chunk (64 KiB) waits here, the
 * rest in the kernel.
 */
export class HttpConnection extends Duplex implements PooledConnection {
  readonly #socket: Socket;
  readonly #options: HttpConnectionOptions;
  #held: Buffer = nothing;
  /** Size of the chunks that `#held` keeps in memory: whole chunks, until their last byte is parsed. */
  #heldBytes = 0;
  /** Whether the client has ended its input and the server has not been notified. */
  #hasEnded = false;
  #isQueued = false;
  #wantsInput = false;
  /** Whether neither a request nor an answer is in progress. */
  #isIdle = true;
  #unanswered = 0;
  #newest: IncomingMessage | undefined;
  #isSending = false;

  constructor(socket: Socket, options: HttpConnectionOptions) {
    super({ decodeStrings: false });
    this.#socket = socket;
    this.#options = options;
    options.pool.add(this);
    socket.on('data', (chunk: Buffer) => this.#hold(chunk));
    socket.on('end', () => {
      this.#hasEnded = true;
      if (this.#held.length === 0) this.#end(); // during an answer: the client has disconnected
    });
    socket.on('error', () => undefined); // 'close' follows
    socket.on('close', () => this.destroy());
    socket.setTimeout(options.patience, () => {
      if (this.#isSending) this.destroy(); // before that the handler is working
    });
  }

  get place(): ClientPlace {
    return this.#options.place;
  }

  /** Address of the client; an IPv4 one as such on a socket of both families, too. */
  get client(): string | undefined {
    return this.#socket.remoteAddress?.replace(/^::ffff:(?=\d+\.)/, '');
  }

  /** Notes that the server starts to process a request. */
  begin(request: IncomingMessage, response: ServerResponse): void {
    this.#unanswered++;
    this.#newest = request;
    response.once('close', () => this.#answered());
  }

  /** Notes that the server starts to send an answer. */
  beginSending(): void {
    this.#isSending = true;
    this.#options.pool.expectReading(this);
  }

  cut(): void {
    this.destroy();
  }

  override _read(): void {
    this.#wantsInput = true;
    this.#queue();
  }

  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, encoding, done);
  }

  override _writev(
    chunks: { chunk: Buffer | string; encoding: BufferEncoding }[],
    done: (error?: Error | null) => void,
  ): void {
    const last = chunks.length - 1;
    this.#socket.cork();
    chunks.forEach(({ chunk, encoding }, index) =>
      this.#socket.write(chunk, encoding, index === last ? done : undefined),
    );
    this.#socket.uncork();
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#socket.end(() => {
      done();
      this.destroy(); // both directions: a client that keeps sending gets no more answers
    });
  }

  override _destroy(_: Error | null, done: (error: Error | null) => void): void {
    this.#options.pool.remove(this);
    this.#drop();
    this.#socket.destroy();
    done(null); // a disconnected client is no error
  }

  #hold(chunk: Buffer): void {
    const isAhead = this.#held.length + chunk.length > sliceLength;
    if (isAhead && this.#options.held.isFull) return void this.destroy();
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    this.#heldBytes += chunk.length;
    this.#options.held.add(chunk.length);
    this.#socket.pause();
    if (this.#isIdle) this.#options.pool.expectRequest(this);
    this.#isIdle = false;
    this.#queue();
  }

  #drop(): void {
    this.#options.held.add(-this.#heldBytes);
    this.#heldBytes = 0;
    this.#held = nothing;
  }

  /** Whether input may pass. The rest of a request's body always may: the answer waits for it. */
  get #isFree(): boolean {
    return this.#unanswered === 0 || (this.#unanswered === 1 && this.#newest?.complete === false);
  }

  #queue(): void {
    if (this.#isQueued || this.destroyed || !this.#wantsInput || !this.#isFree) return;
    if (this.#held.length === 0) return this.#unanswered === 0 ? this.#end() : undefined;
    this.#isQueued = true;
    this.#options.turns.add(this.#options.place, () => {
      this.#isQueued = false;
      if (!this.destroyed) this.#feed();
    });
  }

  #end(): void {
    if (!this.#hasEnded) return;
    this.#hasEnded = false;
    this.push(null);
  }

  #feed(): void {
    const slice = this.#held.subarray(0, lengthOfSlice(this.#held));
    this.#held = this.#held.subarray(slice.length);
    if (this.#held.length === 0) {
      this.#drop();
      this.#socket.resume();
    }
    this.#wantsInput = false;
    this.push(slice); // the server's parser reads it before this returns
    if (this.#isAnswering) this.#options.pool.beginAnswer(this);
    this.#queue();
  }

  #answered(): void {
    this.#unanswered--;
    this.#isSending = false;
    if (this.#unanswered === 0) this.#isIdle = this.#held.length === 0;
    if (this.#isAnswering) this.#options.pool.beginAnswer(this);
    else this.#options.pool.expectRequest(this);
    this.#queue();
  }

  /** Whether the newest request is complete and has no answer yet. */
  get #isAnswering(): boolean {
    return this.#unanswered > 0 && this.#newest?.complete !== false;
  }
}

/** Returns the length up to the end of the first header, so that a slice contains the start of one request at most. */
function lengthOfSlice(input: Buffer): number {
  const end = input.subarray(0, sliceLength).indexOf(endOfHeader);
  return end < 0 ? Math.min(input.length, sliceLength) : end + endOfHeader.length;
}
