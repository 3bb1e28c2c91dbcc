import type { ServerResponse } from 'node:http';
import { type Clock, millis } from '@switchyard/core';
import type { SlowBody } from './faults.ts';

interface Piece {
  /** Monotonic. */
  readonly due: number;
  readonly bytes: Buffer;
}

/**
 * Slows down the body of a response: from now on `write` and `end` only queue, and queued bytes leave late and in small
 * pieces. Headers go out at once. Ends with the response.
 */
export function slowDown(response: ServerResponse, how: SlowBody, clock: Clock, signal: AbortSignal): void {
  const write = response.write.bind(response) as (bytes: Buffer) => boolean;
  const end = response.end.bind(response) as () => ServerResponse;
  const queue: Piece[] = [];
  let hasEnded = false;
  let running: Promise<void> | undefined;

  const send = async (): Promise<void> => {
    for (let piece = queue.shift(); piece !== undefined; piece = queue.shift()) {
      await clock.sleep(millis(Math.max(0, piece.due - clock.monotonic())), signal);
      for (let from = 0; from < piece.bytes.length; from += how.bytes) {
        write(piece.bytes.subarray(from, from + how.bytes));
        await clock.sleep(how.pause, signal);
      }
    }
    running = undefined;
    if (hasEnded) end();
  };
  const add = (body: unknown): void => {
    if (typeof body !== 'string' && !(body instanceof Uint8Array)) return;
    queue.push({ due: clock.monotonic() + how.latency, bytes: Buffer.from(body as string) });
    running ??= send().catch(() => undefined); // rejects only after the client has disconnected
  };
  response.write = ((body: unknown) => {
    add(body);
    return true;
  }) as ServerResponse['write'];
  response.end = ((body?: unknown) => {
    add(body);
    hasEnded = true;
    if (running === undefined) end();
    return response;
  }) as ServerResponse['end'];
}
