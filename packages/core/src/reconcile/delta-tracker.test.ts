import { describe, expect, test } from 'vitest';
import { DeltaTracker } from './delta-tracker.ts';

type Tracker = DeltaTracker<string, string>;

function trackerOf(desired: Record<string, string>, actual: Record<string, string>): Tracker {
  const tracker: Tracker = new DeltaTracker();
  for (const [key, value] of Object.entries(desired)) tracker.setDesired(key, value);
  tracker.replaceActual(Object.entries(actual));
  return tracker;
}

function pendingOf(tracker: Tracker): { updates: Record<string, string>; deletions: string[] } {
  return {
    updates: Object.fromEntries([...tracker.pendingUpdates()].map(([key, update]) => [key, update.desired])),
    deletions: [...tracker.pendingDeletions().keys()],
  };
}

describe('DeltaTracker', () => {
  test.each<readonly [string, readonly [Record<string, string>, Record<string, string>], ReturnType<typeof pendingOf>]>(
    [
      ['nothing wanted and nothing there leaves nothing to do', [{}, {}], { updates: {}, deletions: [] }],
      ['a wanted entry that is missing is an update', [{ a: '1' }, {}], { updates: { a: '1' }, deletions: [] }],
      [
        'a wanted entry with another value is an update',
        [{ a: '1' }, { a: '2' }],
        { updates: { a: '1' }, deletions: [] },
      ],
      ['an equal entry is left alone', [{ a: '1' }, { a: '1' }], { updates: {}, deletions: [] }],
      ['an entry nobody wants is a deletion', [{}, { a: '1' }], { updates: {}, deletions: ['a'] }],
      [
        'each key is judged alone',
        [
          { a: '1', b: '2' },
          { b: '2', c: '3' },
        ],
        { updates: { a: '1' }, deletions: ['c'] },
      ],
    ],
  )('%s', (_, [desired, actual], pending) => {
    expect(pendingOf(trackerOf(desired, actual))).toEqual(pending);
  });

  test('an update carries the value it replaces', () => {
    const tracker = trackerOf({ a: 'new', b: 'new' }, { a: 'old' });
    expect(tracker.pendingUpdates().get('a')).toEqual({ desired: 'new', actual: 'old' });
    expect(tracker.pendingUpdates().get('b')).toEqual({ desired: 'new', actual: undefined });
  });

  test('a deletion carries the value that is there', () => {
    expect(trackerOf({}, { a: 'old' }).pendingDeletions().get('a')).toBe('old');
  });

  test('an entry stays pending until it is marked, and only that entry is settled', () => {
    const tracker = trackerOf({ a: '1', b: '2' }, { c: '3' });
    tracker.markApplied('a', '1');
    expect(pendingOf(tracker)).toEqual({ updates: { b: '2' }, deletions: ['c'] });
    tracker.markDeleted('c');
    expect(pendingOf(tracker)).toEqual({ updates: { b: '2' }, deletions: [] });
    expect(tracker.pendingCount).toBe(1);
  });

  test('marking an older value leaves the newer wish pending', () => {
    const tracker = trackerOf({ a: '1' }, {});
    tracker.setDesired('a', '2');
    tracker.markApplied('a', '1');
    expect(tracker.pendingUpdates().get('a')).toEqual({ desired: '2', actual: '1' });
  });

  test('a change that is undone before it is written costs nothing', () => {
    const tracker = trackerOf({ a: '1' }, { a: '1' });
    tracker.setDesired('a', '2');
    tracker.setDesired('a', '1');
    tracker.setDesired('b', '1');
    tracker.deleteDesired('b');
    expect(tracker.pendingCount).toBe(0);
  });

  test('deleting an unknown key is no error and no work', () => {
    const tracker = trackerOf({}, {});
    tracker.deleteDesired('a');
    expect(tracker.pendingCount).toBe(0);
  });

  test('marking all applied settles updates and deletions', () => {
    const tracker = trackerOf({ a: '1', b: '2' }, { b: '3', c: '4' });
    tracker.markAllApplied();
    expect(tracker.pendingCount).toBe(0);
    expect(Object.fromEntries(tracker.actualEntries())).toEqual({ a: '1', b: '2' });
  });

  test('reading back forgets what was believed to be there', () => {
    const tracker = trackerOf({ a: '1' }, { a: '1' });
    tracker.replaceActual([]);
    expect(pendingOf(tracker)).toEqual({ updates: { a: '1' }, deletions: [] });
  });

  test('a given equality decides, and equal values share one object', () => {
    const tracker = new DeltaTracker<string, { readonly port: number }>((left, right) => left.port === right.port);
    const wanted = { port: 80 };
    tracker.setDesired('a', wanted);
    tracker.replaceActual([['a', { port: 80 }]]);
    expect(tracker.pendingCount).toBe(0);
    expect(tracker.actual('a')).toBe(wanted);
  });

  test('pending entries can be marked while they are walked', () => {
    const tracker = trackerOf({ a: '1', b: '2', c: '3' }, { x: '1', y: '2' });
    for (const [key, update] of tracker.pendingUpdates()) tracker.markApplied(key, update.desired);
    for (const key of tracker.pendingDeletions().keys()) tracker.markDeleted(key);
    expect(tracker.pendingCount).toBe(0);
  });
});
