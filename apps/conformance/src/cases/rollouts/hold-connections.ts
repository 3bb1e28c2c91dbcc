import { type Millis, millis, systemClock } from '@switchyard/core';
import { createProber, type LabHost, type ProbeConnection, type ProbeExchange } from '@switchyard/lab';

/** Target of connections that stay open: an echo server's port by one path. */
export interface HoldTarget {
  /** Name for reports and ids of checks. */
  readonly path: string;
  readonly from: LabHost;
  readonly address: string;
  readonly port: number;
}

/** One connection that was kept open while lines went to and fro. Times are wall clock. */
export interface HeldConnection {
  readonly path: string;
  /** The pod that answered; undefined: it could not be opened. */
  readonly pod: string | undefined;
  /** The first exchange that failed; undefined: none did. */
  readonly failure: HoldFailure | undefined;
  readonly echoed: number;
}

/** Times and status of the first failed exchange. */
export interface HoldFailure {
  readonly askedAt: Millis;
  readonly noticedAt: Millis;
  readonly status: Exclude<ProbeExchange['status'], 'echoed'>;
}

/** Connections that are open. Disposing closes them without a result. */
export interface HeldConnections extends AsyncDisposable {
  /** Ends all exchanges and returns the result of each connection. */
  finish(): Promise<readonly HeldConnection[]>;
}

const period = millis(100);
const patience = 1000;

/** Opens `count` connections by each path and sends a line on each every 0.1 s. */
export async function holdConnections(
  targets: readonly HoldTarget[],
  count: number,
  signal: AbortSignal,
): Promise<HeldConnections> {
  await using stack = new AsyncDisposableStack();
  const stop = new AbortController();
  const opened = await Promise.all(
    targets.map(async ({ path, from, address, port }) => {
      const prober = stack.use(await createProber(from, signal));
      const open = async (): Promise<Opened> => {
        const { result, connection } = await prober.open({ protocol: 'tcp', address, port });
        return { path, connection, pod: result.status === 'answered' ? result.by : undefined };
      };
      return Promise.all(Array.from({ length: count }, open));
    }),
  );
  const running = opened.flat().map((one) => exchangeLines(one, stop.signal));
  const owned = stack.move();
  const all = Promise.all(running);
  all.catch(() => undefined); // of a prober that has ended; `finish` rejects with it
  return {
    finish: () => {
      stop.abort();
      return all;
    },
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await owned.disposeAsync();
      await all.catch(() => undefined);
    },
  };
}

interface Opened {
  readonly path: string;
  readonly pod: string | undefined;
  readonly connection: ProbeConnection | undefined;
}

async function exchangeLines({ path, pod, connection }: Opened, signal: AbortSignal): Promise<HeldConnection> {
  let echoed = 0;
  if (connection === undefined) return { path, pod, echoed, failure: undefined };
  while (!signal.aborted) {
    const askedAt = systemClock.now();
    const { status } = await connection.exchange(`line ${echoed}`, patience);
    if (status !== 'echoed') return { path, pod, echoed, failure: { askedAt, noticedAt: systemClock.now(), status } };
    echoed += 1;
    await systemClock.sleep(period, signal).catch(() => undefined);
  }
  return { path, pod, echoed, failure: undefined };
}

/** Milliseconds. A pod ends a moment after its release was recorded; on a busy machine it may not answer its last lines. */
const slack = 300;

/**
 * Returns `held` for a connection that lasted until its deleted pod stopped serving at `servedUntil`, or else how it broke. A line
 * without an answer counts by the time it was sent, a break by the time it was noticed.
 */
export function holdVerdict({ pod, failure, echoed }: HeldConnection, servedUntil: Millis | undefined): string {
  if (pod === undefined) return 'could not be opened';
  if (failure === undefined) return echoed > 0 ? 'held' : 'never used';
  const at = failure.status === 'timeout' ? failure.askedAt : failure.noticedAt;
  if (servedUntil !== undefined && at >= servedUntil - slack) return 'held';
  const when =
    servedUntil === undefined ? 'though its pod stayed' : `${inSeconds(servedUntil - at)} before its pod's end`;
  return `${failure.status} ${when}`;
}

function inSeconds(time: number): string {
  return `${(time / 1000).toFixed(2)} s`;
}
