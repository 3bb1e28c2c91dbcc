import { millis } from '@switchyard/core';
import { flowText } from '@switchyard/scenarios';
import type { Dial, Seen } from '../../../model/bed.ts';
import type { PodName } from '../../sequence-pods.ts';
import type { Call } from './cast.ts';
import { answerAtPace, countText, limitedText, mostPaced, seenText } from '../../../engine/probe-flow.ts';
import type { Play } from './play.ts';

/** A client that keeps its port, and the endpoint that it must reach. */
export interface Move {
  readonly id: string;
  readonly call: Call;
  /** `refused`: no endpoint is left, and the client gets an error. */
  readonly to: PodName | 'refused';
  /** Who sends; undefined: a socket of its own for each datagram, from the same port. */
  readonly client?: Pick<Dial, 'attempts'>;
}

/**
 * Longest time that a client may reach its old endpoint after a change. Much longer than any proxy needs on an idle machine: a search
 * for sockets visits every network namespace, and labs that run side by side have hundreds.
 */
const patience = millis(10_000);
/** Between two datagrams. */
const interval = millis(20);
/** How many datagrams must meet the same once the first has. */
const more = 3;
/** Of refusals, each of which waits until the node's limits on ICMP errors allow it. */
const moreRefused = 1;

/**
 * Checks that clients reach their new endpoint and keep it. A proxy finds and removes conntrack entries a moment after a change, so a
 * wrong answer only counts when it persists. Clients run side by side, with a check for each.
 */
export async function seeMoved(play: Play, ...moves: readonly Move[]): Promise<void> {
  const answers = await Promise.all(moves.map((move) => untilMoved(play, move)));
  for (const [index, { id, call, to }] of moves.entries()) {
    const seen = answers[index] ?? [];
    const what = `${flowText(play.flowAt(call, { kind: 'pass' }).flow)}, of a client that keeps its port`;
    if (seen.length === 0) {
      play.record.inconclusive({ id, what, because: limitedText(mostPaced) });
      continue;
    }
    const observed = [...new Set(seen.map(whoText))].toSorted().join(' and ');
    play.record.check({ id, what, expected: wantedOf(play, to), observed, because: [countText(seen)] });
  }
}

/** All answers. Empty: undecided, because the node held its refusals back. */
async function untilMoved(play: Play, { call, to, client }: Move): Promise<readonly Seen[]> {
  const dial = client ?? (await play.dial(call));
  if (to === 'refused') return untilRefused(play, call, dial);
  const wanted = wantedOf(play, to);
  const until = play.clock.monotonic() + patience;
  let seen = await dial.attempts(1);
  while (seen.some((one) => whoText(one) !== wanted) && play.clock.monotonic() < until) {
    await play.clock.sleep(interval, play.signal);
    seen = await dial.attempts(1);
  }
  return [...seen, ...(await dial.attempts(more))];
}

async function untilRefused(play: Play, call: Call, dial: Pick<Dial, 'attempts'>): Promise<readonly Seen[]> {
  const limits = play.limitsFor(call);
  const ask = (): Promise<Seen | undefined> => answerAtPace((count) => dial.attempts(count), limits);
  const until = play.clock.monotonic() + patience;
  let seen = await ask();
  while (seen !== undefined && seen.kind !== 'refused' && play.clock.monotonic() < until) seen = await ask();
  if (seen === undefined) return [];
  const all = [seen];
  for (let left = moreRefused; left > 0; left--) {
    const next = await ask();
    if (next === undefined) return [];
    all.push(next);
  }
  return all;
}

function wantedOf(play: Play, to: Move['to']): string {
  return to === 'refused' ? to : play.cast.pod(to);
}

function whoText(seen: Seen): string {
  return seen.kind === 'endpoint' ? seen.address : seenText(seen);
}
