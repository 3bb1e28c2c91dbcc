import { nodeName, type RecordedEvent } from '@switchyard/core';
import { expect, test } from 'vitest';
import { startingEvent } from './agent-events.ts';
import { EarlyEvents } from './early-events.ts';

test('what is recorded early is handed over in order, a hundred at most; later events go straight on', () => {
  const early = new EarlyEvents();
  const seen: string[] = [];
  const record = (event: RecordedEvent): void => void seen.push(event.regarding.name);
  for (let index = 0; index < 120; index++) early.record(startingEvent(nodeName(`n${index}`)));
  expect(seen).toEqual([]);
  early.connect({ record });
  early.record(startingEvent(nodeName('late')));
  expect(seen).toEqual([...Array.from({ length: 100 }, (_, index) => `n${index}`), 'late']);
});
