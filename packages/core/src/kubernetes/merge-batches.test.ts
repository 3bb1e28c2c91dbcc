import { describe, expect, test } from 'vitest';
import { nodeName } from '../model/records/keys.ts';
import type { ClusterEvent } from '../model/state/cluster-event.ts';
import { ManualClock } from '../testing/manual-clock.ts';
import { millis } from '../base/time.ts';
import { type BatchMerger, newBatchMerger } from './kubernetes-source.ts';

const node = (name: string, zone = ''): ClusterEvent => ({
  kind: 'upsert',
  resource: 'Node',
  item: { name: nodeName(name), zone, addresses: [], podCidrs: [], isEligible: true },
});
const gone = (name: string): ClusterEvent => ({ kind: 'delete', resource: 'Node', name });
const cidr = (name: string): ClusterEvent => ({ kind: 'upsert', resource: 'ServiceCIDR', item: { name, cidrs: [] } });
const allNodes = (...names: readonly string[]): ClusterEvent => ({
  kind: 'replace',
  resource: 'Node',
  items: names.map((name) => ({ name: nodeName(name), zone: '', addresses: [], podCidrs: [], isEligible: true })),
});

function short(event: ClusterEvent): string {
  if (event.kind === 'delete') return `-${event.name}`;
  if (event.kind === 'replace')
    return `=${event.items.map((item) => ('name' in item ? item.name : item.key)).join(',')}`;
  return 'zone' in event.item
    ? `+${event.item.name}${event.item.zone}`
    : `+${'name' in event.item ? event.item.name : ''}`;
}

/** A merger whose batches are noted with the time of their delivery. */
function begin(
  maxEvents = 1000,
  idle = 100,
): {
  merger: BatchMerger;
  clock: ManualClock;
  seen: string[];
  stop: AbortController;
  done: Promise<unknown>;
} {
  const clock = new ManualClock();
  const merger = newBatchMerger({ clock, idle: millis(idle), maxDelay: millis(100), quiet: millis(10), maxEvents });
  const seen: string[] = [];
  const stop = new AbortController();
  const pull = async (): Promise<void> => {
    for await (const batch of merger.batches(stop.signal))
      seen.push(`${clock.monotonic()}: ${batch.map(short).join(' ')}`);
  };
  const done = pull().catch((error: unknown) => error);
  return { merger, clock, seen, stop, done };
}

const pass = (clock: ManualClock, time: number): Promise<void> => clock.advance(millis(time));

describe('time', () => {
  test('the first event after idle is delivered at once', async () => {
    const { clock, merger, seen } = begin();
    await pass(clock, 1000);
    merger.push(node('a'));
    await pass(clock, 0);
    expect(seen).toEqual(['1000: +a']);
  });

  test('what is pushed in the same turn is delivered together', async () => {
    const { clock, merger, seen } = begin();
    merger.push(node('a'));
    merger.push(cidr('b'));
    await pass(clock, 0);
    expect(seen).toEqual(['0: +a +b']);
  });

  test('a second event soon after waits for a pause of 10 ms', async () => {
    const { clock, merger, seen } = begin();
    merger.push(node('a'));
    await pass(clock, 3);
    merger.push(node('b'));
    await pass(clock, 5);
    merger.push(node('c'));
    await pass(clock, 50);
    expect(seen).toEqual(['0: +a', '18: +b +c']);
  });

  test('what comes later than the idle time after a delivery does not wait', async () => {
    const { clock, merger, seen } = begin(1000, 20);
    merger.push(node('a'));
    await pass(clock, 20);
    merger.push(node('b'));
    await pass(clock, 19);
    merger.push(node('c'));
    await pass(clock, 50);
    expect(seen).toEqual(['0: +a', '20: +b', '49: +c']);
  });

  test('a flood is cut every 100 ms', async () => {
    const { clock, merger, seen } = begin();
    for (let time = 0; time < 250; time += 5) {
      merger.push(node(`n${time}`));
      await pass(clock, 5);
    }
    await pass(clock, 100);
    expect(seen.map((line) => line.split(':')[0])).toEqual(['0', '105', '205', '255']);
    expect(seen.join(' ').match(/\+n/g)).toHaveLength(50);
  });

  test('no event waits longer than 100 ms, and none is lost', async () => {
    const { clock, merger, seen } = begin();
    merger.push(node('a'));
    await pass(clock, 99);
    for (let step = 0; step < 30; step++) {
      merger.push(node(`b${step}`));
      await pass(clock, 9);
    }
    await pass(clock, 20);
    const times = seen.map((line) => Number(line.split(':')[0]));
    expect(times.slice(0, 3)).toEqual([0, 199, 307]);
    expect(seen.join(' ').match(/\+b/g)).toHaveLength(30);
  });
});

describe('size', () => {
  test('a full batch does not wait', async () => {
    const { clock, merger, seen } = begin(3);
    merger.push(node('a'));
    await pass(clock, 1);
    for (const name of ['b', 'c', 'd']) merger.push(node(name));
    await pass(clock, 0);
    expect(seen).toEqual(['0: +a', '1: +b +c +d']);
    expect(clock.sleeping).toBe(0);
  });
});

describe('merging, while the consumer is busy', () => {
  const merged = async (...events: readonly ClusterEvent[]): Promise<string> => {
    const { clock, merger, seen } = begin();
    for (const event of events) merger.push(event);
    await pass(clock, 0);
    return seen.join(' | ');
  };

  test.each<[string, readonly ClusterEvent[], string]>([
    [
      'a later event of an object replaces the earlier one in its place',
      [node('a', '1'), node('b'), node('a', '2')],
      '0: +a2 +b',
    ],
    ['a delete replaces an upsert', [node('a'), node('b'), gone('a')], '0: -a +b'],
    ['an upsert replaces a delete', [gone('a'), node('a')], '0: +a'],
    ['equal names of different resources are different objects', [node('x'), cidr('x')], '0: +x +x'],
    [
      'a replace drops earlier events of its resource only',
      [node('a'), cidr('c'), gone('b'), allNodes('d')],
      '0: +c =d',
    ],
    ['events after a replace stay after it', [allNodes('a', 'b'), gone('a'), node('c')], '0: =a,b -a +c'],
    [
      'a second replace drops the first and what followed it',
      [allNodes('a'), node('b'), allNodes('c'), node('d')],
      '0: =c +d',
    ],
    ['a replace with nothing in it is kept', [node('a'), allNodes()], '0: ='],
  ])('%s', async (_, events, expected) => {
    expect(await merged(...events)).toBe(expected);
  });
});

test('abort ends the loop while it waits for the first event, with its reason', async () => {
  const { stop, done } = begin();
  stop.abort('enough');
  expect(await done).toBe('enough');
});

test('abort ends the loop while it merges, and leaves no timer', async () => {
  const { clock, done, merger, seen, stop } = begin();
  merger.push(node('a'));
  await pass(clock, 1);
  merger.push(node('b'));
  await pass(clock, 1);
  stop.abort('enough');
  expect(await done).toBe('enough');
  expect(clock.sleeping).toBe(0);
  expect(seen).toEqual(['0: +a']);
});
