import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { EndpointSliceRecord } from '../model/records/records.ts';
import { millis } from '../base/time.ts';
import { linesOf, recorded, recording, replay, type Recorded } from './testing/recorded.ts';
import { ReflectorHarness } from './testing/reflector-harness.ts';

// Duties of a client by each statement of the recording's README: EndpointSlices through rollouts.

let h: ReflectorHarness;

beforeEach(async () => {
  h = await ReflectorHarness.create('EndpointSlice');
});

afterEach(() => h[Symbol.asyncDispose]());

/** Plays a recorded watch after an empty list; resolves with what became of each line. */
async function follow(record: Recorded): Promise<readonly (EndpointSliceRecord | 'deleted')[]> {
  h.start({ shortWatch: millis(0) });
  (await h.sync('1')).end();
  replay(await h.next(), record);
  await h.until(() => h.events.length === 1 + linesOf(record).length);
  return h.events.slice(1).map((event) => {
    if (event.resource !== 'EndpointSlice' || event.kind === 'replace') throw new Error(`unexpected ${event.kind}`);
    return event.kind === 'upsert' ? event.item : 'deleted';
  });
}

const letters = (...conditions: readonly boolean[]): string => conditions.map((one) => (one ? 'T' : 'F')).join('');

/** `10.244.1.51 TTF`: ready, serving, terminating, as the README writes them. */
function conditionsOf(slice: EndpointSliceRecord | 'deleted' | undefined): readonly string[] | 'deleted' {
  if (slice === 'deleted' || slice === undefined) return 'deleted';
  return slice.endpoints.map(
    ({ address, ready, serving, terminating }) => `${address} ${letters(ready, serving, terminating)}`,
  );
}

interface TimelineEntry {
  readonly event: string;
  readonly triggerTime: string | null;
  readonly endpoints: readonly {
    readonly address: string;
    readonly ready: boolean;
    readonly serving: boolean;
    readonly terminating: boolean;
    readonly nodeName: string;
  }[];
}

interface Rollout {
  readonly timeline: readonly TimelineEntry[];
  readonly exchanges: readonly [Recorded];
}

describe.each(['rollout-1-replica.json', 'rollout-2-replicas.json'])('%s', (file) => {
  const { exchanges, timeline } = recording<Rollout>(file);

  test('fixture facts 33, 34 and 37: the conditions of every endpoint at every moment are those of the recorded timeline', async () => {
    const slices = await follow(exchanges[0]);
    const expected = timeline.map(({ endpoints, event }) =>
      event === 'DELETED'
        ? 'deleted'
        : endpoints.map(
            ({ address, ready, serving, terminating }) => `${address} ${letters(ready, serving, terminating)}`,
          ),
    );
    expect(slices.map(conditionsOf)).toEqual(expected);
  });

  test('fixture fact 35: the trigger time is read where it is, and its absence accepted', async () => {
    const slices = await follow(exchanges[0]);
    const times = slices.map((slice) => (slice === 'deleted' ? undefined : slice.lastChangeTriggerTime));
    const expected = timeline.map(({ event, triggerTime }) =>
      event === 'DELETED' || triggerTime === null ? undefined : Date.parse(triggerTime),
    );
    expect(times).toEqual(expected);
    expect(times).toContain(undefined);
  });

  test('fixture fact 36: scaled to 0 the slice stays, empty; it goes with its Service', async () => {
    const slices = await follow(exchanges[0]);
    expect(conditionsOf(slices.at(-2))).toEqual([]);
    expect(slices.at(-1)).toBe('deleted');
  });
});

test('fixture fact 33: the life of one pod in its slice', async () => {
  const slices = await follow(recording<Rollout>('rollout-1-replica.json').exchanges[0]);
  const life = slices.map((slice) => {
    const all = conditionsOf(slice);
    return all === 'deleted' ? all : (all.find((text) => text.startsWith('10.244.1.51 '))?.slice(-3) ?? 'absent');
  });
  const steps = life.filter((step, index) => step !== life[index - 1]);
  expect(steps).toEqual(['absent', 'FFF', 'TTF', 'FTT', 'FFT', 'absent', 'deleted']);
});

test('fixture fact 34: the new pod is ready in the slice before the old one is marked terminating', async () => {
  const slices = await follow(recording<Rollout>('rollout-1-replica.json').exchanges[0]);
  const texts = slices.map((slice) => String(conditionsOf(slice)));
  const bothReady = texts.findIndex((text) => text.includes('1.51 TTF') && text.includes('1.52 TTF'));
  const oldTerminating = texts.findIndex((text) => text.includes('1.51 FTT'));
  expect(bothReady).toBeGreaterThan(0);
  expect(oldTerminating).toBeGreaterThan(bothReady);
});

test('fixture fact 37: both old pods terminate, serving, beside the new ready ones', async () => {
  const slices = await follow(recording<Rollout>('rollout-2-replicas.json').exchanges[0]);
  const counts = slices.map((slice) => String(conditionsOf(slice)).match(/FTT/g)?.length ?? 0);
  expect(Math.max(...counts)).toBeGreaterThanOrEqual(2);
  const atPeak = slices[counts.indexOf(Math.max(...counts))];
  expect(String(conditionsOf(atPeak))).toContain('TTF');
});

describe('watch-endpointslices.json', () => {
  const record = recorded('watch-endpointslices.json', '');

  test('fixture fact 36: null endpoints and ports are empty, empty conditions are ready, hints are read', async () => {
    const slices = await follow(record);
    expect(slices.map(conditionsOf)).toEqual(
      linesOf(record).map((line) => {
        if (line.type === 'DELETED') return 'deleted';
        const { endpoints } = line.object as unknown as {
          endpoints: null | readonly { addresses: readonly string[]; conditions: Partial<Record<string, boolean>> }[];
        };
        return (endpoints ?? []).map(
          ({ addresses, conditions: { ready = true, serving = true, terminating = false } }) =>
            `${addresses[0]} ${letters(ready, serving, terminating)}`,
        );
      }),
    );
    const records = slices.filter((slice) => slice !== 'deleted');
    expect(records.at(-1)).toMatchObject({ endpoints: [], ports: [] });
    expect(records.map(conditionsOf)).toContainEqual(['10.244.1.22 TTF']);
    expect(records.flatMap((slice) => slice.endpoints)).toContainEqual(
      expect.objectContaining({ address: '10.244.1.21', zoneHints: ['z1'], nodeHints: ['node1'], nodeName: 'node1' }),
    );
  });

  test('fixture fact 10: a slice that gets the headless label leaves the selector and is deleted', async () => {
    const slices = await follow(record);
    expect(slices.at(-1)).toBe('deleted');
  });
});

test('fixture fact 21: one Node is watched; its labels, taints and addresses become a record', async () => {
  await using own = await ReflectorHarness.create('Node');
  own.start({ shortWatch: millis(0) });
  (await own.sync('395')).end();
  const watch = await own.next();
  expect(watch.query.get('fieldSelector')).toBe('metadata.name=node1');
  const record = recorded('watch-nodes.json', 'one node');
  replay(watch, record);
  await own.until(() => own.events.length === 1 + linesOf(record).length);
  const events = own.events.slice(1);
  expect(events.every((event) => event.kind === 'upsert')).toBe(true);
  expect(events.at(-1)).toMatchObject({
    item: { name: 'node1', zone: 'z1', podCidrs: ['10.244.1.0/24'], isEligible: true },
  });
});
