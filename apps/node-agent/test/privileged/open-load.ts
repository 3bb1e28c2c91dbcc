import { millis, systemClock } from '@switchyard/core';
import type { Prober, ProbeRequest, ProbeResult } from '@switchyard/lab';

/** Target of repeated requests. */
export interface LoadLine {
  /** Description in reports of lost requests, such as `client, tcp 172.18.0.11:30080`. */
  readonly name: string;
  readonly from: Prober;
  readonly request: ProbeRequest;
}

/** A request without an answer. */
export interface LostRequest {
  readonly line: string;
  /** When it was sent, as logs write it. */
  readonly at: string;
  readonly result: ProbeResult;
}

/** Result of a load. */
export interface LoadReport {
  readonly count: number;
  readonly lost: readonly LostRequest[];
}

/**
 * Open-loop load while `work` runs: each line sends a request every `interval` milliseconds, however slow the answers are, the lines
 * one after another within that time.
 */
export async function openLoad(
  lines: readonly LoadLine[],
  interval: number,
  work: () => Promise<void>,
): Promise<LoadReport> {
  const lost: LostRequest[] = [];
  const sent: Promise<void>[] = [];
  const ask = async ({ name, from, request }: LoadLine): Promise<void> => {
    const at = new Date().toISOString();
    const result = await from.probe(request);
    if (result.status !== 'answered') lost.push({ line: name, at, result });
  };
  const stop = new AbortController();
  const start = systemClock.monotonic();
  const loop = (async (): Promise<void> => {
    for (let index = 0; !stop.signal.aborted; index++) {
      const due = start + (index * interval) / lines.length;
      await systemClock.sleep(millis(Math.max(0, due - systemClock.monotonic())), stop.signal).catch(() => undefined);
      const line = lines[index % lines.length];
      if (line !== undefined && !stop.signal.aborted) sent.push(ask(line));
    }
  })();
  await work().finally(() => stop.abort());
  await loop;
  await Promise.all(sent);
  return { count: sent.length, lost };
}
