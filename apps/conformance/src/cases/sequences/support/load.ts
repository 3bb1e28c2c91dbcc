import { HostError, millis, systemClock } from '@switchyard/core';
import type { LoadResult, LoadRun, ProbeConnection } from '@switchyard/lab';
import { flowText } from '@switchyard/scenarios';
import { echoPatience, loadEvidence } from '../../../engine/evidence.ts';
import { seenText } from '../../../engine/probe-flow.ts';
import { type Call, callName } from './object-factory.ts';
import type { SequenceContext } from './sequence-context.ts';

/** The only accepted result of a load. */
const nothingLost = 'no request lost';

/** A load during an event. */
interface LoadSpec {
  /** Beginning of the check ids, one for each call. */
  readonly id: string;
  /** Event during the load, in words: `while the proxy is restarted`. */
  readonly during: string;
  readonly calls: readonly Call[];
}

/** Requests per second, of each call. */
const rate = 100;
/**
 * For a request in all, in milliseconds. Shorter than the second after which a client sends its SYN again, so a packet that was
 * dropped is a request that is lost.
 */
const timeout = millis(900);
/** Longer than any sequence: loads are stopped. */
const longest = millis(120_000);
/** Longest time until a load generator sends its first request, in milliseconds. */
const patience = 10_000;
/** Requests continue for this time after the event, in milliseconds. */
const afterwards = 100;

/** Runs work while new connections are made at a steady rate, and checks for each call that no request was lost. */
export async function underLoad(context: SequenceContext, load: LoadSpec, work: () => Promise<void>): Promise<void> {
  const { id, during, calls } = load;
  await using runs = new AsyncDisposableStack();
  const loads: { readonly call: Call; readonly run: LoadRun }[] = [];
  for (const call of context.possible(calls, (one) => ({ id: `${id}/${callName(one)}`, call: one }))) {
    const run = runs.use((await context.connectorFor(call)).load({ rate, timeout, duration: longest }));
    loads.push({ call, run });
  }
  const since = systemClock.now();
  await Promise.all(loads.map(({ run }) => hasBegun(context, run)));
  await work();
  await context.sleep(afterwards);
  const all = await Promise.all(loads.map(({ run }) => run.stop()));
  const beside = all.flat();
  for (const [index, { call }] of loads.entries()) {
    const what = `${rate} requests/s, ${flowText(context.flowAt(call).flow)}, ${during}`;
    const { counting, doubt } = loadEvidence(all[index] ?? [], beside);
    const { observed, because } = lossText(counting);
    const check = { id: `${id}/${callName(call)}`, what };
    if (observed !== nothingLost || doubt === undefined)
      context.record.check({ ...check, expected: nothingLost, observed, because }, undefined, since);
    else context.record.inconclusive({ ...check, because: doubt });
  }
}

/** Waits for the first result, of any outcome: from then on the schedule runs. */
async function hasBegun(context: SequenceContext, run: LoadRun): Promise<void> {
  const done = new AbortController();
  const first = async (): Promise<void> => {
    for await (const _ of run) return;
  };
  const late = async (): Promise<never> => {
    await context.clock.sleep(millis(patience), AbortSignal.any([context.signal, done.signal]));
    throw new HostError('sequence.load', `the load generator sent nothing for ${patience} ms; see ${run.logFile}`);
  };
  try {
    await Promise.race([first(), late()]);
  } finally {
    done.abort();
  }
}

function lossText(results: readonly LoadResult[]): { readonly observed: string; readonly because: readonly string[] } {
  const lost = results.filter(({ outcome }) => outcome !== 'answered');
  const because = [`${results.length} sent, ${lost.length} lost`];
  if (results.length === 0) return { observed: 'no request was sent', because };
  const [first] = results;
  if (lost.length === 0 || first === undefined) return { observed: nothingLost, because };
  const kinds = Map.groupBy(lost, ({ outcome }) => outcome);
  const times = lost.map(({ scheduledAt }) => (scheduledAt - first.scheduledAt) / 1000);
  return {
    observed: 'requests lost',
    because: [
      ...because,
      [...kinds].map(([outcome, same]) => `${same.length} ${outcome}`).join(', '),
      `from ${Math.min(...times).toFixed(2)} s to ${Math.max(...times).toFixed(2)} s after the first request`,
    ],
  };
}

/** Expected result for an established connection. */
const goesOn = 'the connection goes on';

/** An open TCP connection by a Service. */
export interface Held {
  /** Name in check ids: `pod by clusterIP`. */
  readonly name: string;
  readonly what: string;
  readonly connection: ProbeConnection | undefined;
  readonly call: Call;
}

/** Opens a connection and records as a check whether an endpoint answered. */
export async function hold(context: SequenceContext, call: Call, name: string = callName(call)): Promise<Held> {
  const { flow } = context.flowAt(call);
  const opened = { id: `${name}/opened`, what: `a connection kept open, ${flowText(flow)}` };
  const [possible] = context.possible([call], () => ({ ...opened, call }));
  if (possible === undefined) return { name, what: opened.what, connection: undefined, call };
  const { seen, connection } = await (await context.connectorFor(call)).hold();
  const isOpen = seen.kind === 'endpoint' && connection !== undefined;
  const observed = isOpen ? 'open' : seenText(seen);
  context.record.check({ ...opened, expected: 'open', observed, because: [seenText(seen)] });
  return { name, what: opened.what, connection, call };
}

/** Sends a line over each connection, side by side, and records for each whether it came back. */
export async function exchange(context: SequenceContext, moment: string, held: readonly Held[]): Promise<void> {
  const all = context.possible(held, ({ name, call }) => ({ id: `${name}/${moment}`, call }));
  const texts = await Promise.all(
    all.map(async ({ connection }) => (await connection?.exchange(moment, echoPatience))?.status ?? 'never opened'),
  );
  for (const [index, one] of all.entries()) {
    const status = texts[index];
    const observed = status === 'echoed' ? goesOn : (status ?? '');
    const id = `${one.name}/${moment}`;
    context.record.check({ id, what: `${one.what}: ${moment}`, expected: goesOn, observed, because: [] });
  }
}

/** Closes connections and ignores those that could not be opened. */
export async function release(all: readonly Held[]): Promise<void> {
  await Promise.all(all.map(({ connection }) => connection?.close()));
}
