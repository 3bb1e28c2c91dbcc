import type { ForwardingTable } from '@switchyard/core';
import { type EndpointSpec, here, MemoryLogger, situation, type SituationSpec, there } from '@switchyard/core/testing';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FakeNft } from '../../src/testing/fake-nft.ts';
import { Driven } from './support.ts';

/** Few addresses for many Services, so that frontends, cluster IPs and pods pass from one to another all the time. */
const endpoint: fc.Arbitrary<EndpointSpec> = fc.constantFrom(
  here('10.244.1.1'),
  here('10.244.1.2'),
  there('10.244.2.1'),
  there('10.244.2.2'),
);

const spec: fc.Arbitrary<SituationSpec> = fc
  .record({
    cluster: fc.nat(3),
    ports: fc.subarray([80, 81, 82], { minLength: 1 }),
    nodePort: fc.constantFrom(undefined, 30000, 30001),
    external: fc.subarray(['198.51.100.1', '198.51.100.2']),
    policy: fc.constantFrom('Cluster' as const, 'Local' as const),
    endpoints: fc.uniqueArray(endpoint, { maxLength: 4, selector: ({ ip }) => ip }),
  })
  .map(({ cluster, ports, nodePort, external, policy, endpoints }) => ({
    clusterIps: [`10.96.0.${cluster + 1}`],
    ports: ports.map((port, index) => ({
      name: `p${port}`,
      port,
      ...(nodePort === undefined ? {} : { nodePort: nodePort + 10 * index }),
    })),
    externalIps: external,
    type: nodePort === undefined ? 'ClusterIP' : 'NodePort',
    external: policy,
    endpoints,
  }));

const table: fc.Arbitrary<ForwardingTable> = fc
  .uniqueArray(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd', 'e'), spec), { selector: ([name]) => name })
  .map((services) => situation(Object.fromEntries(services)));

interface Step {
  readonly table: ForwardingTable;
  /** Which transactions of this step are refused, in turn. */
  readonly refused: readonly boolean[];
  /** Changes that the kernel refuses during this step. */
  readonly poison: string | undefined;
  readonly isRestart: boolean;
}

const step: fc.Arbitrary<Step> = fc.record({
  table,
  refused: fc.array(fc.boolean(), { maxLength: 6 }),
  poison: fc.constantFrom(undefined, undefined, '10\\.244\\.2\\.1 ', '198\\.51\\.100\\.1 ', '10\\.96\\.0\\.2 '),
  isRestart: fc.constantFrom(false, false, false, true),
});

/** Returns how many refused transactions only delete. */
async function takeStep(driven: Driven, { table: wanted, refused, poison, isRestart }: Step): Promise<number> {
  let calls = 0;
  let deletions = 0;
  const isRefused = (): boolean => {
    const answer = refused[calls++] === true;
    if (answer && !/^(?!delete)./m.test(driven.nft.scripts.at(-1) ?? '')) deletions++;
    return answer;
  };
  driven.nft.failures = { rate: 0.5, random: () => (isRefused() ? 0 : 1) };
  driven.nft.refusing = poison === undefined ? undefined : new RegExp(`^add element .*${poison}`, 'm');
  const outcome = isRestart ? await driven.full(wanted) : await driven.next(wanted);
  driven.nft.failures = { rate: 0, random: () => 1 };
  driven.nft.refusing = undefined;
  if (refused.length === 0 && poison === undefined) expect(outcome.status).toBe('applied');
  return deletions;
}

test('after any refusals, the kernel holds exactly the last table, and never surprises', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 8 }), table, async (steps, last) => {
      const nft = new FakeNft();
      const logger = new MemoryLogger();
      let driven = await Driven.open(nft, 'IPv4', logger);
      await driven.full(situation({}));
      let deletions = 0;
      for (const one of steps) {
        if (one.isRestart) driven = await Driven.open(nft, 'IPv4', logger);
        deletions += await takeStep(driven, one);
      }
      expect(await driven.next(last)).toMatchObject({ status: 'applied' });
      const fresh = await Driven.open();
      await fresh.full(last);
      expect(await driven.dump()).toBe(await fresh.dump());
      // Nothing is left over either.
      expect(await (await Driven.open(nft)).full(last)).toEqual({ status: 'applied', writes: 0 });
      // Bookkeeping and kernel never came apart: nothing had to be read back, except after half of a change.
      expect(logger.transitions.filter((line) => line !== 'warn the rules are read back')).toEqual([]);
      expect(logger.transitions.length).toBeLessThanOrEqual(deletions);
    }),
    { numRuns: 300 },
  );
}, 60_000);
