import type { Readable, Writable } from 'node:stream';

/** Buffers a stream. The returned function gives the text so far. */
export function collect(stream: Readable): () => string {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks).toString('utf8');
}

/** Passes a stream to `take` without buffering; the returned function gives ''. Calls `threw` at the first exception and stops passing. */
export function passOn(stream: Readable, take: (piece: string) => void, threw: (error: unknown) => void): () => string {
  stream.setEncoding('utf8');
  let isTaking = true;
  stream.on('data', (piece: string) => {
    if (!isTaking) return; // keep reading: a program whose pipe is full does not end
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
 * Writes the input at the program's reading speed, then ends the stream. Ignores stream errors: a program may end without
 * reading everything, and its exit status reports failures. Calls `threw` with an exception of the iterable.
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

/** Resolves when the stream has room again or the program has ended. */
function drained(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      stream.off('drain', go).off('close', go);
      resolve();
    };
    stream.on('drain', go).on('close', go);
  });
}
