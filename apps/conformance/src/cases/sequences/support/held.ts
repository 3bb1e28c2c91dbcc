import type { IpAddress } from '@switchyard/core';
import type { ProbeConnection } from '@switchyard/lab';
import { flowText } from '@switchyard/scenarios';
import { type Call, callName } from './object-factory.ts';
import { seenText } from '../../../engine/probe-flow.ts';
import type { SequenceContext } from './sequence-context.ts';

/** Expected result for an established connection. */
export const goesOn = 'the connection goes on';

/** An open TCP connection by a Service. */
export interface Held {
  /** Name in check ids: `pod by clusterIP`. */
  readonly name: string;
  readonly what: string;
  readonly endpoint: IpAddress | undefined;
  readonly connection: ProbeConnection | undefined;
}

/** Opens a connection and records as a check whether an endpoint answered. */
export async function hold(context: SequenceContext, call: Call, name: string = callName(call)): Promise<Held> {
  const { flow } = context.flowAt(call, { kind: 'pass' });
  const { seen, connection } = await (await context.connectorFor(call)).hold();
  const what = `a connection kept open, ${flowText(flow)}`;
  const isOpen = seen.kind === 'endpoint' && connection !== undefined;
  const observed = isOpen ? 'open' : seenText(seen);
  context.record.check({ id: `${name}/opened`, what, expected: 'open', observed, because: [seenText(seen)] });
  return { name, what, endpoint: seen.kind === 'endpoint' ? seen.address : undefined, connection };
}

/** Sends a line over each connection, side by side, and records for each whether it came back. */
export async function exchange(context: SequenceContext, moment: string, all: readonly Held[]): Promise<void> {
  const texts = await Promise.all(
    all.map(async ({ connection }) => (await connection?.exchange(moment))?.status ?? 'never opened'),
  );
  for (const [index, held] of all.entries()) {
    const status = texts[index];
    const observed = status === 'echoed' ? goesOn : (status ?? '');
    const id = `${held.name}/${moment}`;
    context.record.check({ id, what: `${held.what}: ${moment}`, expected: goesOn, observed, because: [] });
  }
}

/** Closes connections and ignores those that could not be opened. */
export async function release(all: readonly Held[]): Promise<void> {
  await Promise.all(all.map(({ connection }) => connection?.close()));
}
