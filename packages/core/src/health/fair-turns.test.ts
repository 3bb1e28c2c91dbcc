import { expect, test } from 'vitest';
import { type ClientPlace, FairTurns } from './connection-pool.ts';

/** Turns of an event loop that stands still until a test moves it. */
function loop() {
  const scheduled: (() => void)[] = [];
  const turns = new FairTurns((callback) => void scheduled.push(callback));
  const done: string[] = [];
  return {
    done,
    scheduled,
    add: (place: ClientPlace, name: string) => turns.add(place, () => void done.push(name)),
    turn: () => scheduled.shift()?.(),
  };
}

test('a turn does one piece of work, in order of arrival', () => {
  const { done, scheduled, add, turn } = loop();
  ['a', 'b', 'c'].forEach((name) => add('elsewhere', name));
  expect(done).toEqual([]);
  turn();
  expect(done).toEqual(['a']);
  turn();
  turn();
  expect(done).toEqual(['a', 'b', 'c']);
  expect(scheduled).toHaveLength(0); // nothing is left to wake up for
});

test('clients on this node and elsewhere take turns, also if one of them has more work', () => {
  const { done, add, turn } = loop();
  ['e1', 'e2', 'e3', 'e4'].forEach((name) => add('elsewhere', name));
  turn();
  ['n1', 'n2'].forEach((name) => add('node', name));
  for (let count = 0; count < 5; count++) turn();
  expect(done).toEqual(['e1', 'n1', 'e2', 'n2', 'e3', 'e4']);
});

test('work that adds work waits for its next turn', () => {
  const { done, add, turn } = loop();
  const turns = new FairTurns((callback) => callback());
  turns.add('node', () => add('node', 'later'));
  expect(done).toEqual([]);
  turn();
  expect(done).toEqual(['later']);
});
