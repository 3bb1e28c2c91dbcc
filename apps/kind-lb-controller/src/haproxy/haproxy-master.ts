import { type Clock, HostError, type Millis, millis, seconds } from '@switchyard/core';
import { askSocket } from './ask-socket.ts';

/** A running HAProxy master, which starts and replaces the workers that do the work. */
export interface HaproxyMaster {
  readonly pid: number;
  /** Its own socket, as given with `-S`. */
  readonly socket: string;
  readonly hasEnded: boolean;
  /** The last lines it wrote to stderr, if we can read them. */
  readonly errorOutput: string;
  /** Forgets what was written so far: what comes next is about the next attempt. */
  clearErrorOutput(): void;
  /** Asks it to read its configuration again and to replace its workers; does not wait for that. */
  requestReload(signal: AbortSignal): Promise<void>;
}

/** State of a master, from its own answer. */
export interface MasterState {
  readonly pid: number;
  readonly reloads: number;
  /** Reloads that failed since the last good one. */
  readonly failed: number;
  readonly workers: readonly number[];
}

const answerLimit = seconds(2);
const pollInterval = millis(10);

/** Asks the master about itself. Rejects with `HostError` while it does not listen. */
export async function masterState({ pid, socket }: HaproxyMaster, signal: AbortSignal): Promise<MasterState> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(answerLimit)]);
  const state = parseMasterState(await askSocket(socket, 'show proc', limited));
  if (state?.pid === pid) return state;
  throw new HostError('haproxy.master', `another process than our HAProxy (${pid}) answers on ${socket}`);
}

/** State of the master that answers on a socket; undefined when none does, as while it starts or re-executes itself. */
export async function answeringMaster(socket: string, signal: AbortSignal): Promise<MasterState | undefined> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(answerLimit)]);
  try {
    return parseMasterState(await askSocket(socket, 'show proc', limited));
  } catch (error) {
    if (signal.aborted || !(error instanceof HostError || isTimeout(error))) throw error;
    return undefined;
  }
}

/** Waits until the master says what is wanted; undefined when it ended, or did not in time. */
export async function waitForMaster(
  master: HaproxyMaster,
  isWanted: (state: MasterState) => boolean,
  { clock, limit }: { readonly clock: Clock; readonly limit: Millis },
  signal: AbortSignal,
): Promise<MasterState | undefined> {
  const deadline = clock.monotonic() + limit;
  while (!master.hasEnded && clock.monotonic() < deadline) {
    const state = await answeringMaster(master.socket, signal);
    if (state?.pid === master.pid && isWanted(state)) return state;
    await clock.sleep(pollInterval, signal);
  }
  return undefined;
}

/** Reads the answer to `show proc`; undefined if it is none. */
export function parseMasterState(text: string): MasterState | undefined {
  const master = /^(\d+)\s+master\s+(\d+)\s+(?:\[failed: (\d+)\])?/m.exec(text);
  if (master === null) return undefined;
  const current = text.split('# old workers')[0] ?? '';
  return {
    pid: Number(master[1]),
    reloads: Number(master[2]),
    failed: Number(master[3] ?? 0),
    workers: [...current.matchAll(/^(\d+)\s+worker\s/gm)].map(([, pid]) => Number(pid)),
  };
}

function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'TimeoutError';
}
