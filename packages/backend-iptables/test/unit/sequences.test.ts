import type { ApplyOutcome } from '@switchyard/core/engine';
import type { ForwardingTable } from '@switchyard/core';
import { situation } from '@switchyard/core/testing';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FakeIptables } from '../../src/testing/index.ts';
import { anyTable as table } from './any-table.ts';
import { Driven } from './support.ts';

/** Further events between two tables. */
type Event = 'nothing' | 'restart' | 'full' | 'flush' | 'foreign rules';
const step = fc.record({
  table,
  event: fc.constantFrom<Event>('nothing', 'nothing', 'nothing', 'restart', 'full', 'flush', 'foreign rules'),
});

/** Rules that the kubelet makes too stay when they are no longer wanted. */
function withoutKubelet(dump: string): string {
  return dump.replaceAll(/^.*KUBE-FIREWALL.*\n/gm, '');
}

/** Deterministic noise. */
function noise(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state / 0x80000000;
  };
}

/** As the reconciler: a failed apply is followed by a full one, a partial one names the failed again. */
async function drive(driven: Driven, wanted: ForwardingTable, isFull: boolean): Promise<void> {
  let outcome: ApplyOutcome = await (isFull ? driven.full(wanted) : driven.next(wanted));
  for (let tries = 0; outcome.status !== 'applied'; tries++) {
    if (tries === 30) throw new Error(`not applied: ${JSON.stringify(outcome)}`);
    const isPartial = outcome.status === 'partial' && tries < 3;
    outcome = await (isPartial ? driven.next(wanted) : driven.full(wanted));
  }
}

function damage(iptables: FakeIptables, variant: 'nft' | 'legacy', event: Event): void {
  if (event === 'flush') iptables.put('IPv4', variant, '*nat\n-F KUBE-SERVICES\n-F KUBE-POSTROUTING\nCOMMIT\n');
  if (event !== 'foreign rules') return;
  const rules = '-A KUBE-SERVICES -d 192.0.2.1/32 -j RETURN\n-I KUBE-NODEPORTS 1 -j RETURN\n';
  const chains = ':KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]\n:KUBE-SEP-AAAAAAAAAAAAAAAA - [0:0]\n';
  const jumps = '-A KUBE-SVC-AAAAAAAAAAAAAAAA -j KUBE-SEP-AAAAAAAAAAAAAAAA\n';
  iptables.put('IPv4', variant, `*nat\n${chains}${rules}${jumps}COMMIT\n`);
}

test.each([
  ['nft', 0],
  ['legacy', 0],
  ['nft', 0.2],
  ['legacy', 0.2],
] as const)(
  'after any history, variant %s with %d of all restores failing ends as if only the last table had been',
  async (variant, rate) => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 6 }), fc.nat(1000), async (steps, seed) => {
        const iptables = new FakeIptables();
        iptables.failures = { rate, random: noise(seed) };
        let driven = await Driven.open({ variant, iptables });
        let isFirst = true;
        for (const { table: wanted, event } of steps) {
          if (!isFirst) damage(iptables, variant, event);
          if (event === 'restart') driven = await Driven.open({ variant, iptables });
          await drive(driven, wanted, isFirst || event !== 'nothing');
          isFirst = false;
        }
        iptables.failures = { rate: 0, random: () => 1 };
        const last = steps.at(-1)?.table ?? situation({});
        const fresh = await Driven.open({ variant });
        await fresh.full(last);
        const expected = withoutKubelet(await fresh.dump());
        const before = withoutKubelet(await driven.dump());
        expect(await driven.full(last)).toMatchObject({ status: 'applied' });
        expect(withoutKubelet(await driven.dump())).toBe(expected);
        // Nothing was wrong before, unless a refusal left something that only reading shows.
        if (rate === 0) expect(before).toBe(expected);
        expect(await driven.full(last)).toEqual({ status: 'applied', writes: 0 });
      }),
      { numRuns: 40 },
    );
  },
);
