import { nodeName } from '@switchyard/core';
import { expect, test } from 'vitest';
import type { ConfigNote } from '../config/notes.ts';
import { configEvents } from './agent-events.ts';

test('a note with an event is a Warning on the Node; other notes are log lines alone', () => {
  const plain: ConfigNote = { level: 'info', message: 'feature gates have no effect', fields: {} };
  const note = 'unrecognized feature gate: X (this agent knows no such gate)';
  const events = configEvents(nodeName('n1'), [
    plain,
    { ...plain, level: 'warn', event: { reason: 'FeatureGateIgnored', note } },
  ]);
  expect(events).toEqual([
    {
      type: 'Warning',
      reason: 'FeatureGateIgnored',
      action: 'StartKubeProxy',
      regarding: expect.objectContaining({ kind: 'Node', name: 'n1' }) as unknown,
      note,
    },
  ]);
});
