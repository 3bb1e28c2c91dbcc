import { InvariantError, millis } from '@switchyard/core';
import { flowText } from '@switchyard/scenarios';
import { answerAtPace, countText, limitedText, mostPaced, seenText } from '../../../engine/probe-flow.ts';
import type { AskingSocket, FlowConnector, Seen } from '../../../model/test-environment.ts';
import type { Call, PodName } from './object-factory.ts';
import type { SequenceContext } from './sequence-context.ts';

type Asker = Pick<FlowConnector, 'attempts'>;

/** A client that keeps its port, and the endpoint that it must reach. */
export interface Move {
  readonly id: string;
  readonly call: Call;
  /** `refused`: no endpoint is left, and the client gets an error. */
  readonly to: PodName | 'refused';
  /** Sender; undefined: a new socket for each datagram, from the same port. */
  readonly client?: Asker;
}

/**
 * Longest time that a client may reach its old endpoint after a change. Much longer than any proxy needs on an idle machine: a search
 * for sockets visits every network namespace, and labs that run side by side have hundreds.
 */
const patience = millis(10_000);
/** Pause between two datagrams. */
const interval = millis(20);
/** Further datagrams that must reach the same endpoint as the first. */
const more = 3;
/** Further refusals. Each one waits until the node's limits on ICMP errors allow it. */
const moreRefused = 1;

/**
 * Checks that clients reach their new endpoint and keep it. A proxy finds and removes conntrack entries a moment after a change, so a
 * wrong answer only counts when it persists. Clients run side by side, with a check for each.
 */
export async function seeMoved(context: SequenceContext, ...all: readonly Move[]): Promise<void> {
  const moves = context.possible(all, (one) => one);
  const answers = await Promise.all(moves.map((move) => untilMoved(context, move)));
  for (const [index, { id, call, to }] of moves.entries()) {
    const seen = answers[index] ?? [];
    const what = `${flowText(context.flowAt(call).flow)}, of a client that keeps its port`;
    if (seen.length === 0) {
      context.record.inconclusive({ id, what, because: limitedText(mostPaced) });
      continue;
    }
    const observed = [...new Set(seen.map(whoText))].toSorted().join(' and ');
    context.record.check({ id, what, expected: wantedOf(context, to), observed, because: [countText(seen)] });
  }
}

/** All answers. Empty: undecided, because the node held its refusals back. */
async function untilMoved(context: SequenceContext, { call, to, client }: Move): Promise<readonly Seen[]> {
  const connector = client ?? (await context.connectorFor(call));
  if (to === 'refused') return untilRefused(context, call, connector);
  const wanted = wantedOf(context, to);
  const until = context.clock.monotonic() + patience;
  let seen = await connector.attempts(1);
  while (seen.some((one) => whoText(one) !== wanted) && context.clock.monotonic() < until) {
    await context.clock.sleep(interval, context.signal);
    seen = await connector.attempts(1);
  }
  return [...seen, ...(await connector.attempts(more))];
}

async function untilRefused(context: SequenceContext, call: Call, connector: Asker): Promise<readonly Seen[]> {
  const limits = context.limitsFor(call);
  const ask = (): Promise<Seen | undefined> => answerAtPace((count) => connector.attempts(count), limits);
  const until = context.clock.monotonic() + patience;
  let seen = await ask();
  while (seen !== undefined && seen.kind !== 'refused' && context.clock.monotonic() < until) seen = await ask();
  if (seen === undefined) return [];
  const all = [seen];
  for (let left = moreRefused; left > 0; left--) {
    const next = await ask();
    if (next === undefined) return [];
    all.push(next);
  }
  return all;
}

function wantedOf(context: SequenceContext, to: Move['to']): string {
  return to === 'refused' ? to : context.objects.pod(to);
}

function whoText(seen: Seen): string {
  return seen.kind === 'endpoint' ? seen.address : seenText(seen);
}

/** A client with one UDP socket, which it replaces by one with the same port if the kernel destroyed it, as resolvers do. */
interface UdpClient extends Asker {
  close(): Promise<void>;
}

/** Kind of a client's socket: connected, or naming the Service with each datagram. */
export type UdpSocketKind = 'connected' | 'unconnected';

export async function openUdpClient(context: SequenceContext, call: Call, kind: UdpSocketKind): Promise<UdpClient> {
  const connector = await context.connectorFor(call);
  const open = async (): Promise<AskingSocket> => {
    const opened = connector[kind]?.();
    if (opened !== undefined) return opened;
    throw new InvariantError('the environment says that it can hold sockets, and has no way to');
  };
  let socket = await open();
  const ask = async (): Promise<Seen> => {
    const seen = await socket.ask();
    if (seen.kind === 'other') {
      await socket.close();
      socket = await open();
    }
    return seen;
  };
  return {
    attempts: async (count) => {
      const all: Seen[] = [];
      for (let left = count; left > 0; left--) all.push(await ask());
      return all;
    },
    close: () => socket.close(),
  };
}
