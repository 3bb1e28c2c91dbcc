import { millis, systemClock } from '@switchyard/core';
import type { JsonRequest, ObjectClient } from '@switchyard/core/kubernetes';
import { expect, test } from 'vitest';
import { startRemoteLoad } from './remote-load.ts';
import { callsOf } from './traffic-caller.ts';

/** A pod whose clock is a minute ahead, and a load of one request. */
const ahead = 60_000;
const signal = new AbortController().signal;

function answer({ path }: JsonRequest): unknown {
  const now = systemClock.now() + ahead;
  const request = { sequence: 0, scheduledAt: now, sentAt: now, doneAt: now, outcome: 'answered' };
  const from = path.endsWith('/loaded') ? calls++ : 0;
  if (path.endsWith('/clock')) return { now };
  if (path.endsWith('/load')) return { load: 1 };
  return { messages: from === 0 ? [request] : [], isFinished: true };
}

let calls = 0;

test('the times of a load in a pod are by the clock of this machine', async () => {
  const send = async (request: JsonRequest) => ({
    status: 200,
    body: JSON.stringify(answer(request)),
    retryAfter: undefined,
  });
  const api = { send } as Partial<ObjectClient> as ObjectClient;
  const caller = { api, namespace: 'n', token: 't' };
  const call = callsOf(caller, { name: 'p', port: 1 });
  const start = systemClock.now();
  const [first] = await startRemoteLoad(call, { url: 'tcp://192.0.2.1:1', duration: millis(1000) }, signal).finished;
  expect(first?.outcome).toBe('answered');
  for (const at of [first?.scheduledAt, first?.sentAt, first?.doneAt]) {
    expect(Math.abs((at ?? 0) - start)).toBeLessThan(ahead / 2);
  }
});
