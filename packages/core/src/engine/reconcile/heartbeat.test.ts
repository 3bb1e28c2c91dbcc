import { describe, expect, test } from 'vitest';
import { HostError, UsageError } from '../../base/errors.ts';
import { settle } from '../../testing/manual-clock.ts';
import { cartSlice, cluster, hang, ReconcilerBench } from '../../testing/reconciler-bench.ts';
import { millis, seconds } from '../../base/time.ts';
import { heartbeatInterval } from './heartbeat.ts';

const broken = new HostError('test.broken', 'the kernel says no');

describe('the heartbeat', () => {
  test('comes right after the first apply, not before, and then at every interval', async () => {
    await using bench = new ReconcilerBench({ backend: { heartbeat: {} } });
    await bench.clock.advance(60_000);
    expect(bench.recording.heartbeats).toEqual([]);
    await bench.push(cluster);
    expect(bench.recording.heartbeats).toEqual([1]);
    await bench.clock.advance(heartbeatInterval);
    await bench.clock.advance(heartbeatInterval);
    expect(bench.recording.heartbeats).toEqual([1, 1, 1]);
  });

  test('is the same however many applies there are', async () => {
    await using bench = new ReconcilerBench({ backend: { heartbeat: {} } });
    await bench.push(cluster);
    for (let last = 1; last < 6; last++) await bench.push(cartSlice(`10.244.1.${last + 10}`));
    expect(bench.recording.heartbeats).toEqual([1]);
  });

  test('stops while applies fail, and comes back with the first that succeeds', async () => {
    const refused = { kind: 'refused', retryAfter: millis(25_000) } as const;
    await using bench = new ReconcilerBench({ backend: { heartbeat: {} }, faults: [undefined, refused] });
    await bench.push(cluster);
    await bench.push(cartSlice('10.244.1.3'));
    await bench.clock.advance(24_000);
    expect(bench.recording.heartbeats).toEqual([1]);
    await bench.clock.advance(1000);
    await bench.clock.advance(heartbeatInterval);
    expect(bench.recording.heartbeats).toEqual([1, 2]);
  });

  test('stops while a change waits for an apply that hangs', async () => {
    let isHanging = false;
    const during = async (_: unknown, signal: AbortSignal): Promise<void> => (isHanging ? hang(signal) : undefined);
    await using bench = new ReconcilerBench({ backend: { heartbeat: {}, during } });
    await bench.push(cluster);
    isHanging = true;
    await bench.push(cartSlice('10.244.1.3'));
    for (let round = 0; round < 4; round++) await bench.clock.advance(heartbeatInterval);
    expect(bench.recording.heartbeats).toEqual([1]);
  });

  test('stops while the source is out of contact, and comes back with it', async () => {
    let silence = seconds(149);
    await using bench = new ReconcilerBench({ backend: { heartbeat: {} }, sourceSilence: () => silence });
    await bench.push(cluster);
    expect(bench.recording.heartbeats).toHaveLength(1);
    silence = seconds(150);
    for (let round = 0; round < 3; round++) await bench.clock.advance(heartbeatInterval);
    expect(bench.recording.heartbeats).toHaveLength(1);
    silence = seconds(0);
    await bench.clock.advance(heartbeatInterval);
    expect(bench.recording.heartbeats).toHaveLength(2);
  });

  test('that fails is logged once, and once more when it works again', async () => {
    await using bench = new ReconcilerBench({ backend: { heartbeat: { failures: [undefined, broken, broken] } } });
    await bench.push(cluster);
    for (let round = 0; round < 4; round++) await bench.clock.advance(heartbeatInterval);
    expect(bench.recording.heartbeats).toHaveLength(3);
    expect(bench.messages('cannot keep the age of the rules in the kernel, will retry')).toHaveLength(2); // one of them at debug
    expect(bench.messages('the age of the rules is kept in the kernel again')).toEqual([
      { message: 'the age of the rules is kept in the kernel again', ipFamily: 'IPv4' },
    ]);
  });

  test('that breaks the contract ends the process', async () => {
    const failures = [new UsageError('test.usage', 'a defect')];
    await using bench = new ReconcilerBench({ backend: { heartbeat: { failures } } });
    await bench.push(cluster);
    await expect(bench.ended).rejects.toThrow('a defect');
  });
});

describe('the age that is found', () => {
  const told = 'rules were not reconciled for some time';

  test('is logged at the start, before anything is in sync', async () => {
    await using bench = new ReconcilerBench({ backend: { heartbeat: { age: millis(83_456) } } });
    await settle();
    expect(bench.messages(told)).toEqual([{ message: told, ipFamily: 'IPv4', forSeconds: 83.5 }]);
  });

  test.each([
    ['the kernel has no rules of the agent', { heartbeat: {} }],
    ['the backend keeps none', {}],
  ])('is not told when %s', async (_, backend) => {
    await using bench = new ReconcilerBench({ backend });
    await bench.push(cluster);
    expect(bench.messages(told)).toEqual([]);
    expect(bench.applies).toEqual(['full']);
  });

  test('is no condition for the start: where it cannot be read that is a warning', async () => {
    await using bench = new ReconcilerBench({ backend: { heartbeat: { age: broken } } });
    await bench.push(cluster);
    expect(bench.messages('cannot read the age of the rules from the kernel')).toMatchObject([{ error: broken }]);
    expect(bench.applies).toEqual(['full']);
  });
});
