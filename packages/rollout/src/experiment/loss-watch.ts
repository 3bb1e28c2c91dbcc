import { type Millis, millis, systemClock } from '@switchyard/core';
import { jsonLines, readLogFile } from '../rollout/read-logs.ts';
import type { PacketLoss, WatchedLosses } from '../run-record.ts';
import type { Experiment } from './experiment.ts';

/** The agents' watches of lost packets. Disposing ends them. */
export interface LossWatch extends AsyncDisposable {
  /** Lost packets of a Service so far. Resolves when those of the moment of the call are among them. */
  lossesOf(service: WatchedService, signal: AbortSignal): Promise<WatchedLosses>;
}

/** Service whose losses are wanted. */
export interface WatchedService {
  readonly namespace: string;
  readonly name: string;
}

/** A line of /debug/losses; the first one says whether packets are watched. */
interface LossLine {
  readonly time: string;
  readonly node: string;
  readonly packets?: { readonly watched: boolean; readonly why?: string };
  readonly cause?: string;
  readonly why?: string;
  readonly services?: readonly string[];
  readonly count?: number;
}

/** Agents read twice a second. */
const readingTime = millis(1000);
const longest = 3600;

/** Starts to watch at the agent of each node. */
export function watchLosses({ lab }: Pick<Experiment, 'lab'>): LossWatch {
  const url = `http://127.0.0.1:10249/debug/losses?format=json&seconds=${longest}`;
  const watches = lab.nodes.map((node) =>
    node.spawn('curl', ['--no-buffer', '--silent', '--show-error', '--fail', url], { logName: 'losses' }),
  );
  const lines = (): readonly LossLine[] =>
    watches.flatMap(({ logFile }) => jsonLines<LossLine>(readLogFile(logFile), 'the losses of an agent'));
  return {
    async lossesOf({ namespace, name }, signal) {
      await systemClock.sleep(readingTime, signal);
      const found = lines();
      const heads = found.flatMap(({ packets }) => packets ?? []);
      const obstacle = heads.find(({ watched }) => !watched)?.why;
      if (obstacle !== undefined || heads.length < watches.length) {
        return { status: 'unwatched', why: obstacle ?? 'an agent gave no answer' };
      }
      const isOfService = (key: string): boolean => key.startsWith(`${namespace}/${name}:`);
      return { status: 'watched', losses: found.filter((line) => line.services?.some(isOfService)).map(lossOf) };
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(watches.map((watch) => watch.stop()));
    },
  };
}

function lossOf({ time, node, cause = '', why = '', count = 0 }: LossLine): PacketLoss {
  return { at: Date.parse(time) as Millis, node, cause, why, count };
}
