import { describe, expect, test } from 'vitest';
import { HostError } from '../../base/errors.ts';
import { slice } from '../../testing/builders.ts';
import type { Fault } from '../../testing/faulty-backend.ts';
import { cart, cartSlice, cluster, hang, pay, ReconcilerBench } from '../../testing/reconciler-bench.ts';
import { millis } from '../../base/time.ts';

describe('a failed apply', () => {
  test.each<readonly [string, Fault]>([
    ['refused as a whole', { kind: 'refused' }],
    ['written, but the answer was lost', { kind: 'answerLost' }],
    ['refused after another process emptied the kernel', { kind: 'flushed' }],
    ['thrown although it concerns the host', { kind: 'thrown', error: new HostError('host.x', 'nft is gone') }],
  ])('%s is followed by a full one that repairs everything', async (_, fault) => {
    await using bench = new ReconcilerBench({ faults: [undefined, fault] });
    await bench.push(cluster);
    await bench.push(cartSlice('10.244.1.3'));
    await bench.clock.advance(1000);
    expect(bench.applies.at(-1)).toBe('full');
    expect(bench.recording.kernel).toEqual(new Map(bench.recording.table?.services));
    expect(bench.recording.kernel.get(cart)?.endpoints.Cluster).toMatchObject([{ address: '10.244.1.3' }]);
  });

  test('backs off', async () => {
    await using bench = new ReconcilerBench({
      faults: Array.from({ length: 5 }, () => ({ kind: 'refused' }) as const),
    });
    await bench.push(cluster);
    const times: number[] = [];
    for (let second = 0; second < 40; second++) {
      if (times.length < bench.backend.calls) times.push(second);
      await bench.clock.advance(1000);
    }
    expect(times).toEqual([0, 1, 3, 7, 15, 31]);
  });

  test('is retried when the backend says', async () => {
    await using bench = new ReconcilerBench({ faults: [{ kind: 'refused', retryAfter: millis(200) }] });
    await bench.push(cluster);
    await bench.clock.advance(200);
    expect(bench.applies).toEqual(['full']);
  });

  test('is retried at once by the next change', async () => {
    await using bench = new ReconcilerBench({ faults: [undefined, { kind: 'refused' }] });
    await bench.push(cluster);
    await bench.push(cartSlice('10.244.1.3'));
    await bench.push(cartSlice('10.244.1.4'));
    expect(bench.applies).toEqual(['full', 'full']);
  });

  test('shows for how long the oldest change has been waiting, also while an apply hangs', async () => {
    await using bench = new ReconcilerBench({
      faults: [undefined, { kind: 'refused' }],
      backend: {
        during: ({ table }, signal) => (table.generation === 3 ? hang(signal) : Promise.resolve()),
      },
    });
    await bench.push(cluster);
    expect(bench.family()?.pendingFor).toBeUndefined();
    await bench.push(cartSlice('10.244.1.3'));
    await bench.clock.advance(400);
    expect(bench.family()?.pendingFor).toBe(400);
    await bench.push(cartSlice('10.244.1.4'));
    await bench.clock.advance(600);
    expect(bench.family()?.pendingFor).toBe(1000);
  });

  test('is logged when it begins, when the reason changes and when it ends', async () => {
    const other: Fault = { kind: 'thrown', error: new HostError('host.y', 'no memory') };
    await using bench = new ReconcilerBench({ faults: [undefined, { kind: 'refused' }, { kind: 'refused' }, other] });
    await bench.push(cluster);
    await bench.push(cartSlice('10.244.1.3'));
    expect(bench.family()?.failure).toMatchObject({ text: 'injected fault: refused' });
    bench.clock.jump(-86_400_000); // a duration is no difference of wall clocks
    await bench.clock.advance(60_000);
    expect(bench.messages('apply failed, will retry in full')).toHaveLength(2);
    expect(bench.messages('apply works again')).toMatchObject([{ failedForMs: 7000 }]);
    expect(bench.family()?.failure).toBeUndefined();
  });
});

describe('a partial apply', () => {
  const refusal = new HostError('nft.refused', 'element rejected');

  test('keeps only what failed dirty, and retries it with back-off', async () => {
    await using bench = new ReconcilerBench();
    bench.recording.refuse(cart, refusal);
    await bench.push(cluster);
    await bench.clock.advance(1000);
    bench.recording.refuse(cart, undefined);
    await bench.clock.advance(2000);
    await bench.clock.advance(60_000);
    expect(bench.applies).toEqual(['full', `delta: ${cart}`, `delta: ${cart}`]);
    expect([...bench.recording.kernel.keys()].sort()).toEqual([cart, pay]);
  });

  test('applies the changes of others meanwhile', async () => {
    await using bench = new ReconcilerBench();
    bench.recording.refuse(cart, refusal);
    await bench.push(cluster);
    await bench.push([
      { kind: 'upsert', resource: 'EndpointSlice', item: slice('shop/pay', { endpoints: ['10.244.1.5'] }) },
    ]);
    expect(bench.applies).toEqual(['full', `delta: ${cart} ${pay}`]);
    expect(bench.recording.kernel.get(pay)?.endpoints.Cluster).toMatchObject([{ address: '10.244.1.5' }]);
  });

  test('names the service in status, with text and time, and logs both transitions once', async () => {
    await using bench = new ReconcilerBench();
    bench.recording.refuse(cart, refusal);
    await bench.push(cluster);
    await bench.clock.advance(10_000);
    expect(bench.family()?.failedServices).toEqual(new Map([[cart, { text: 'element rejected', since: 1000 }]]));
    expect(bench.events).toEqual([
      {
        type: 'Warning',
        reason: 'FailedToApply',
        action: 'Apply',
        regarding: { kind: 'Service', namespace: 'shop', name: 'cart', uid: '' },
        note: `node n1, IPv4: ${cart} is not forwarded as it should be, will be tried again: element rejected`,
      },
    ]);
    expect(bench.family()).toMatchObject({ pendingFor: undefined, failure: undefined });
    bench.recording.refuse(cart, undefined);
    await bench.clock.advance(30_000);
    expect(bench.family()?.failedServices.size).toBe(0);
    expect(bench.messages('service not applied, will retry')).toMatchObject([{ service: cart }]);
    expect(bench.messages('service no longer failing')).toMatchObject([{ service: cart }]);
  });

  test('asks again to remove what could not be removed', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(cluster);
    bench.recording.refuse(cart, refusal);
    await bench.push([{ kind: 'delete', resource: 'Service', name: 'shop/cart' }]);
    expect([...bench.recording.kernel.keys()]).toEqual([cart, pay]);
    bench.recording.refuse(cart, undefined);
    await bench.clock.advance(1000);
    expect([...bench.recording.kernel.keys()]).toEqual([pay]);
  });
});
