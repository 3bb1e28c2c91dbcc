import type { Readable, Writable } from 'node:stream';

/** Keeps everything that comes; the answer gives it as one text. */
export function collect(stream: Readable): () => string {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks).toString('utf8');
}

/** Hands on what comes and keeps nothing: the answer is empty. Stops at the first throw, of which `threw` is told. */
export function hand(stream: Readable, take: (piece: string) => void, threw: (error: unknown) => void): () => string {
  stream.setEncoding('utf8');
  let isTaking = true;
  stream.on('data', (piece: string) => {
    if (!isTaking) return; // read on all the same: a program that cannot write does not end
    try {
      take(piece);
    } catch (error) {
      isTaking = false;
      threw(error);
    }
  });
  return () => '';
}

/**
 * Writes an input and ends it, not faster than it is read. A program may end without reading all, which is no failure: its
 * exit says enough. `threw` is told what the iterable throws.
 */
export function feed(stream: Writable, input: string | Iterable<string>, threw: (error: unknown) => void): void {
  stream.on('error', () => undefined);
  if (typeof input === 'string') stream.end(input);
  else void pump(stream, input).catch(threw);
}

async function pump(stream: Writable, pieces: Iterable<string>): Promise<void> {
  for (const piece of pieces) {
    if (stream.destroyed) return;
    if (!stream.write(piece)) await drained(stream);
  }
  stream.end();
}

/** Until there is room again, or the program has ended. */
function drained(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      stream.off('drain', go).off('close', go);
      resolve();
    };
    stream.on('drain', go).on('close', go);
  });
}
