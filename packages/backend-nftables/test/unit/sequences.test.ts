import { type ApplyOutcome, withFailed } from '@switchyard/core/engine';
import { diffTables, type ForwardingTable, noopLogger, type ServicePortKey } from '@switchyard/core';
import { type EndpointSpec, here, situation, type SituationSpec, there } from '@switchyard/core/testing';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { NftablesBackend } from '../../src/backend.ts';
import { type Fate, MemoryKernel } from './memory-transport.ts';
import { signal } from './support.ts';

/** Enough endpoints for a class that is made at run time, and a few of them at a time as well. */
const pods: readonly EndpointSpec[] = Array.from({ length: 70 }, (_, index) =>
  index % 3 === 0 ? here(`10.244.1.${index + 1}`) : there(`10.244.2.${index + 1}`),
);

const endpoints: fc.Arbitrary<readonly EndpointSpec[]> = fc.oneof(
  fc.subarray(pods.slice(0, 6)),
  fc.integer({ min: 64, max: 70 }).map((count) => pods.slice(0, count)),
);

const spec: fc.Arbitrary<SituationSpec> = fc
  .record({
    cluster: fc.nat(3),
    ports: fc.subarray([80, 81], { minLength: 1 }),
    balancer: fc.subarray(['198.51.100.1', '198.51.100.2']),
    sourceRanges: fc.subarray(['10.0.0.0/8', '10.1.0.0/16', '10.1.2.0/24', '192.0.2.0/24']),
    policy: fc.constantFrom('Cluster' as const, 'Local' as const),
    affinitySeconds: fc.constantFrom(undefined, 60, 90),
    endpoints,
  })
  .map(({ cluster, ports, balancer, sourceRanges, policy, affinitySeconds, endpoints: chosen }) => ({
    clusterIps: [`10.96.0.${cluster + 1}`],
    ports: ports.map((port) => ({ name: `p${port}`, port })),
    loadBalancerIps: balancer,
    sourceRanges,
    external: policy,
    ...(affinitySeconds === undefined ? {} : { affinitySeconds }),
    endpoints: chosen,
  }));

const table: fc.Arbitrary<ForwardingTable> = fc
  .uniqueArray(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd'), spec), { selector: ([name]) => name })
  .map((services) => situation(Object.fromEntries(services)));

interface Step {
  readonly table: ForwardingTable;
  readonly fates: readonly Fate[];
  /** Event before this step: a foreign change, or a `restart` in another process. */
  readonly event: 'nothing' | 'restart' | 'flush' | 'lose';
  readonly which: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  table,
  fates: fc.array(fc.constantFrom<Fate>('taken', 'refused', 'lost', 'flushed'), { maxLength: 5 }),
  event: fc.constantFrom('nothing', 'nothing', 'nothing', 'restart', 'flush', 'lose'),
  which: fc.nat(),
});

class Driven {
  readonly kernel: MemoryKernel;
  readonly #backend: NftablesBackend;
  #last: ForwardingTable | undefined;
  #failed: ReadonlyMap<ServicePortKey, Error> = new Map();

  constructor(kernel: MemoryKernel) {
    const host = { logger: noopLogger };
    this.kernel = kernel;
    this.#backend = new NftablesBackend(host, kernel.transport(), 'IPv4');
  }

  async next(wanted: ForwardingTable, isFull = this.#last === undefined): Promise<ApplyOutcome> {
    const delta = withFailed(diffTables(this.#last, wanted), wanted, this.#failed);
    const outcome = await this.#backend.apply(
      { table: wanted, scope: isFull ? { kind: 'full' } : { kind: 'delta', delta } },
      signal,
    );
    this.#last = outcome.status === 'failed' ? undefined : wanted; // as the reconciler has it
    this.#failed = outcome.status === 'partial' ? outcome.failed : new Map();
    return outcome;
  }

  dump(): Promise<string> {
    return this.#backend.dump(signal);
  }
}

test('a table deleted during a full write fails the apply without blaming a service, and the next apply heals', async () => {
  const driven = new Driven(new MemoryKernel());
  const wanted = situation({ a: { endpoints: pods }, b: { endpoints: pods, clusterIps: ['10.96.0.9'] } });
  driven.kernel.fates = ['flushed'];
  const outcome = await driven.next(wanted);
  expect(outcome).toMatchObject({ status: 'failed', error: { code: 'nftables.vanished' } });
  expect(await driven.next(wanted)).toMatchObject({ status: 'applied' });
});

test('a Service that cannot be rendered keeps no table of another build alive', async () => {
  const kernel = new MemoryKernel();
  kernel.load('switchyard', 1);
  const many = Array.from({ length: 4096 }, (_, index) => there(`10.245.${index >> 8}.${index & 255}`));
  const large = { endpoints: many, affinitySeconds: 60, clusterIps: ['10.96.0.9'] };
  const outcome = await new Driven(kernel).next(situation({ a: { endpoints: pods }, large }));
  expect(outcome).toMatchObject({ status: 'partial', failed: new Map([['shop/large:/TCP', expect.any(Error)]]) });
  expect([...kernel.tables.keys()]).toEqual(['switchyard-2']);
});

test('one that the kernel refuses does: its clients are still served there', async () => {
  const kernel = new MemoryKernel();
  kernel.load('switchyard', 1);
  const driven = new Driven(kernel);
  const wanted = situation({ a: { endpoints: pods } });
  kernel.fates = ['refused', 'refused'];
  expect(await driven.next(wanted)).toMatchObject({ status: expect.stringMatching(/partial|failed/) });
  expect([...kernel.tables.keys()]).toEqual(['switchyard', 'switchyard-2']);
  expect(await driven.next(wanted)).toMatchObject({ status: 'applied' });
  expect([...kernel.tables.keys()]).toEqual(['switchyard-2']);
});

test('sources that were allowed before a restart go with those that take their place, however much else is to do', async () => {
  const kernel = new MemoryKernel();
  const balancer = (range: string): ForwardingTable =>
    situation({ a: { endpoints: pods, loadBalancerIps: ['198.51.100.1'], sourceRanges: [range] } });
  await new Driven(kernel).next(balancer('10.0.0.0/8'));
  const pairs = Array.from({ length: 6000 }, (_, index) => `10.9.${index >> 8}.${index & 255}`);
  for (const ip of pairs) kernel.tables.get('switchyard')?.objects.get('hairpin4')?.set(`${ip} . ${ip} . tcp . 80`, '');
  expect(await new Driven(kernel).next(balancer('10.1.0.0/16'))).toMatchObject({ status: 'applied', writes: 6002 });
  expect(kernel.elements.filter((id) => id.startsWith('fw-allow'))).toEqual([
    'fw-allow4 198.51.100.1 . tcp . 80 . 10.1.0.0/16',
  ]);
});

test('after refusals, losses and foreign changes, the kernel holds exactly the last table', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 8 }), table, async (steps, last) => {
      const kernel = new MemoryKernel();
      let driven = new Driven(kernel);
      await driven.next(situation({}));
      let isTouched = false;
      for (const { table: wanted, fates, event, which } of steps) {
        if (event === 'restart') driven = new Driven(kernel);
        if (event === 'flush') kernel.tables.clear();
        const { elements } = kernel;
        if (event === 'lose' && elements.length > 0) kernel.lose(elements[which % elements.length]!);
        isTouched = event === 'flush' || event === 'lose';
        kernel.fates = [...fates];
        await driven.next(wanted, isTouched || undefined);
        kernel.fates = [];
      }
      // A retry, as the reconciler makes it, then the last change.
      await driven.next(steps.at(-1)!.table);
      expect(await driven.next(last)).toMatchObject({ status: 'applied' });
      const fresh = new Driven(new MemoryKernel());
      await fresh.next(last);
      expect(await driven.dump()).toBe(await fresh.dump());
      expect(await new Driven(kernel).next(last)).toEqual({ status: 'applied', writes: 0 });
    }),
    { numRuns: 150 },
  );
}, 60_000);
