import { describe, expect, test } from 'vitest';
import { HostError, UsageError } from '../../base/errors.ts';
import { settle } from '../../testing/manual-clock.ts';
import { cart, cartSlice, cluster, ReconcilerBench } from '../../testing/reconciler-bench.ts';
import type { Drift } from '../dataplane-backend.ts';

const drift: Drift = {
  kind: 'element',
  changes: ['element 10.96.0.10 . tcp . 80 of frontends4 deleted'],
  process: { pid: 4711, name: 'nft' },
};

const noticed = 'drift: another process changed the rules';
const fought = 'drift: another process keeps changing the rules; they are repaired at most once a second';

/** Another process removes the forwarding of the cart. */
async function damage(bench: ReconcilerBench, kind: Drift['kind'] = 'element'): Promise<void> {
  bench.recording.drift({ ...drift, kind }, cart);
  await settle();
}

/** A bench whose first apply is done; those that begin from then on last until `release`. */
async function heldApplies(): Promise<{ readonly bench: ReconcilerBench; readonly release: () => void }> {
  let isSlow = false;
  const { promise: go, resolve } = Promise.withResolvers<undefined>();
  const bench = new ReconcilerBench({ backend: { during: async () => (isSlow ? go : undefined) } });
  await bench.push(cluster);
  isSlow = true;
  const release = (): void => {
    isSlow = false;
    resolve(undefined);
  };
  return { bench, release };
}

describe('drift', () => {
  test('is healed at once by a full apply', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(cluster);
    await bench.clock.advance(5000);
    await damage(bench);
    expect(bench.applies).toEqual(['full', 'full after drift']);
    expect(bench.recording.kernel.has(cart)).toBe(true);
  });

  test('is healed by an apply that reads everything where one was due for another reason', async () => {
    const { bench: held, release } = await heldApplies();
    await using bench = held;
    await bench.push(cartSlice('10.244.1.3'));
    bench.reconciler.requestFullResync('test');
    await damage(bench);
    release();
    await settle();
    expect(bench.applies.slice(1)).toEqual([`delta: ${cart}`, 'full']);
  });

  test('is healed by an apply that reads everything when the one before failed', async () => {
    await using bench = new ReconcilerBench({ faults: [undefined, { kind: 'refused' }] });
    await bench.push(cluster);
    await damage(bench);
    await bench.clock.advance(1000);
    expect(bench.applies).toEqual(['full', 'full']);
  });

  test('that is healed together with a change of the cluster is still only a repair', async () => {
    const { bench: held, release } = await heldApplies();
    await using bench = held;
    await bench.push(cartSlice('10.244.1.3'));
    await damage(bench);
    await bench.push(cartSlice('10.244.1.4'));
    release();
    await settle();
    expect(bench.applies.slice(1)).toEqual([`delta: ${cart}`, 'full after drift']);
  });

  test('does not put off the regular resync', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(cluster);
    await bench.clock.advance(3_599_000);
    await damage(bench);
    await bench.clock.advance(1000);
    expect(bench.applies).toEqual(['full', 'full after drift', 'full']);
  });

  test('is logged with what changed and who did it, and counted by kind', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(cluster);
    await damage(bench, 'chain');
    expect(bench.messages(noticed)).toEqual([
      { message: noticed, ipFamily: 'IPv4', kind: 'chain', changes: drift.changes, process: drift.process },
    ]);
    expect(bench.drifts).toEqual(['IPv4 chain']);
  });

  test('is reported as healed with the time since it was reported, failed applies included', async () => {
    await using bench = new ReconcilerBench({ faults: [undefined, { kind: 'refused' }] });
    await bench.push(cluster);
    await damage(bench);
    expect(bench.messages('drift healed')).toEqual([]);
    await bench.clock.advance(1000);
    expect(bench.messages('drift healed')).toMatchObject([{ ipFamily: 'IPv4', durationMs: 1000 }]);
  });

  test('is recorded as an Event when it is healed, with the first changes', async () => {
    await using bench = new ReconcilerBench({ faults: [undefined, { kind: 'refused' }] });
    await bench.push(cluster);
    await damage(bench);
    expect(bench.events.map(({ reason }) => reason)).toEqual(['FailedToApply']);
    await damage(bench, 'chain');
    await bench.clock.advance(1000);
    expect(bench.events.slice(1)).toEqual([
      {
        type: 'Warning',
        reason: 'ForwardingRulesRepaired',
        action: 'RepairForwardingRules',
        regarding: { kind: 'Node', namespace: '', name: 'n1', uid: '' },
        note:
          'IPv4: nft (pid 4711) changed the forwarding rules in the kernel (element 10.96.0.10 . tcp . 80 of frontends4 ' +
          'deleted); they are repaired after 1000 ms',
      },
    ]);
  });

  test('that comes during an apply is healed by the next one: this one may have read the kernel before', async () => {
    const { bench: held, release } = await heldApplies();
    await using bench = held;
    await bench.push(cartSlice('10.244.1.3'));
    await damage(bench);
    release();
    await settle();
    expect(bench.applies.slice(1)).toEqual([`delta: ${cart}`, 'full after drift']);
    expect(bench.messages('drift healed')).toHaveLength(1);
  });

  test('during the repair of another one is recorded as an Event, too', async () => {
    const { bench: held, release } = await heldApplies();
    await using bench = held;
    await damage(bench);
    await damage(bench, 'chain');
    release();
    await bench.clock.advance(1000);
    expect(bench.messages('drift healed')).toHaveLength(2);
    expect(bench.events.map(({ reason }) => reason)).toEqual(['ForwardingRulesRepaired', 'ForwardingRulesRepaired']);
  });

  test('that is not all gone is not told as healed, but with what is left', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(cluster);
    bench.recording.unremoved = new Error('cannot remove it');
    await damage(bench);
    expect(bench.messages('drift healed')).toEqual([]);
    expect(bench.events).toEqual([]);
    const text = 'drift not healed: a foreign object in the rules could not be removed; the regular resync tries again';
    expect(bench.messages(text)).toMatchObject([{ ipFamily: 'IPv4', reason: 'cannot remove it' }]);
    bench.recording.unremoved = undefined;
    await bench.clock.advance(10_000);
    await damage(bench);
    expect(bench.messages('drift healed')).toHaveLength(1);
  });

  test('no drift, no word of healing', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(cluster);
    bench.reconciler.requestFullResync('test');
    await settle();
    expect(bench.messages('drift healed')).toEqual([]);
  });
});

describe('a program that changes our table again and again', () => {
  async function fight(bench: ReconcilerBench, milliseconds: number): Promise<void> {
    for (let time = 0; time < milliseconds; time += 50) {
      await damage(bench);
      await bench.clock.advance(50);
    }
  }

  test('is answered at once, then once a second', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(cluster);
    const before = bench.applies.length;
    await fight(bench, 5000);
    expect(bench.applies.length - before).toBe(1 + 5);
    await bench.clock.advance(60_000);
    expect(bench.recording.kernel.has(cart)).toBe(true);
  });

  test('is warned of once, while each change is counted', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(cluster);
    await fight(bench, 5000);
    expect(bench.messages(noticed)).toHaveLength(1);
    expect(bench.messages(fought)).toHaveLength(1);
    expect(bench.drifts).toHaveLength(100);
  });

  test('is news again after ten calm seconds', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(cluster);
    await fight(bench, 500);
    await bench.clock.advance(10_000);
    await damage(bench);
    expect(bench.messages(noticed)).toHaveLength(2);
  });

  test('does not keep a stop waiting', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(cluster);
    await fight(bench, 100);
    bench.stop();
    await bench.ended;
    expect(bench.clock.sleeping).toBe(0);
  });
});

test('a backend that cannot notice drift is named, once', async () => {
  await using bench = new ReconcilerBench({ backend: { canWatch: false } });
  await bench.push(cluster);
  await bench.clock.advance(60_000);
  const message = 'foreign changes are not noticed by this backend; the regular resync finds them';
  expect(bench.messages(message)).toEqual([{ message, ipFamily: 'IPv4' }]);
});

describe('a watch that fails', () => {
  const watching = 'foreign changes are not noticed until the watch works again; the regular resync finds them';

  test('for a reason of the host is tried again after a minute, and what was missed is read back', async () => {
    await using bench = new ReconcilerBench({ backend: { watchFailures: [new HostError('native.x', 'no memory')] } });
    await bench.push(cluster);
    expect(bench.messages(watching)).toMatchObject([{ ipFamily: 'IPv4', retryMs: 60_000 }]);
    await bench.clock.advance(60_000);
    expect(bench.applies).toEqual(['full', 'full']);
    await damage(bench);
    expect(bench.messages(noticed)).toHaveLength(1);
  });

  test('for a defect of the program ends the run', async () => {
    await using bench = new ReconcilerBench({ backend: { watchFailures: [new UsageError('x.y', 'a mistake')] } });
    await bench.push(cluster);
    await expect(bench.ended).rejects.toThrow('a mistake');
  });
});
