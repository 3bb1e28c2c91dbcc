import { beforeEach, describe, expect, test } from 'vitest';
import { HostError } from '../../base/errors.ts';
import { noopLogger } from '../../base/log.ts';
import { diffTables } from '../../model/forwarding/build-table.ts';
import type { ForwardingTable } from '../../model/forwarding/forwarding-table.ts';
import { type ServicePortKey, serviceKey, servicePortKey } from '../../model/records/keys.ts';
import { DrivenBackend } from '../../testing/driven-backend.ts';
import { type HeldEntry, MemoryDriver, MemoryKernel } from '../../testing/memory-driver.ts';
import { situation } from '../../testing/situations.ts';
import type { ApplyOutcome, ApplyRequest, DataplaneBackend } from '../dataplane-backend.ts';
import { ApplyEngine, ServiceTracker } from './apply-engine.ts';
import { createApply } from './apply-engine.ts';

const keyOf = (name: string): ServicePortKey => servicePortKey(serviceKey('shop', name), '', 'TCP');
const [a, b, c] = [keyOf('a'), keyOf('b'), keyOf('c')];

/** Services by name, each with endpoints 10.0.0.N. */
function shop(endpoints: Readonly<Record<string, readonly number[]>>): ForwardingTable {
  const specs = Object.entries(endpoints).map(([name, last], index) => [
    name,
    { clusterIps: [`10.96.0.${index + 1}`], endpoints: last.map((one) => ({ ip: `10.0.0.${one}`, node: 'n2' })) },
  ]);
  return situation(Object.fromEntries(specs));
}

/** An engine with a driver over a kernel, as a backend puts them together. */
class Driven extends DrivenBackend {
  readonly driver: MemoryDriver;
  #controller = new AbortController();

  constructor(kernel: MemoryKernel) {
    const tracker = new ServiceTracker<HeldEntry>();
    const driver = new MemoryDriver(kernel, tracker, { sleep: () => Promise.resolve() });
    const engine = new ApplyEngine(driver, tracker);
    const applyTo = createApply(engine, { logger: noopLogger, ipFamily: 'IPv4' });
    const apply = (request: ApplyRequest): Promise<ApplyOutcome> => {
      this.#controller = new AbortController();
      return applyTo(request, this.#controller.signal);
    };
    super({ apply } as unknown as DataplaneBackend); // the rest of a backend is not called
    this.driver = driver;
  }

  abort(reason: Error): void {
    this.#controller.abort(reason);
  }

  heal(table: ForwardingTable): Promise<ApplyOutcome> {
    return this.backend.apply({ table, scope: { kind: 'full', after: 'drift' } }, this.#controller.signal);
  }
}

let kernel: MemoryKernel;
let driven: Driven;
beforeEach(() => {
  kernel = new MemoryKernel();
  driven = new Driven(kernel);
});

const applied = (writes: number): ApplyOutcome => ({ status: 'applied', writes });
const failedKeys = (outcome: ApplyOutcome): readonly string[] =>
  outcome.status === 'partial' ? [...outcome.failed.keys()] : [outcome.status];

describe('one path', () => {
  test('a first apply reads, then writes settings, services, and settings that need them', async () => {
    expect(await driven.next(shop({ a: [1], b: [2] }))).toEqual(applied(4));
    expect(kernel.calls).toEqual(['read', `write first ${a} ${b} last`]);
    expect(kernel.text).toEqual(['first=on', 'last=on', `${a}=10.0.0.1`, `${b}=10.0.0.2`]);
  });

  test('a delta reads nothing and writes what it names, removals last', async () => {
    await driven.full(shop({ a: [1], b: [2] }));
    kernel.calls.length = 0;
    expect(await driven.next(shop({ b: [2, 3], c: [4] }))).toEqual(applied(3));
    expect(kernel.calls).toEqual([`write ${b} ${c} -${a}`]);
  });

  test('a delta looks at no service that it does not name', async () => {
    const table = shop({ a: [1], b: [2] });
    await driven.full(table);
    const next = shop({ a: [1], b: [3] });
    const delta = diffTables(table, next);
    const services = new Proxy(next.services, {
      get: () => {
        throw new Error('the whole table was looked at');
      },
    });
    const request = { table: { ...next, services }, scope: { kind: 'delta', delta } } as const;
    expect(await driven.backend.apply(request, new AbortController().signal)).toEqual(applied(1));
  });

  test('a kernel that matches is not written, by a delta, in full, or by a new process', async () => {
    const table = shop({ a: [1], b: [2] });
    await driven.full(table);
    expect(await driven.next(table)).toEqual(applied(0));
    expect(await driven.full(table)).toEqual(applied(0));
    expect(await new Driven(kernel).full(table)).toEqual(applied(0));
  });

  test('a new process adopts what is right, writes what differs, and removes what is stale at the end', async () => {
    await driven.full(shop({ a: [1], b: [2], c: [3] }));
    kernel.calls.length = 0;
    expect(await new Driven(kernel).full(shop({ a: [1], b: [9] }))).toEqual(applied(2));
    expect(kernel.calls).toEqual(['read', `write ${b} -${c}`]);
  });

  test('changed settings are written around the services', async () => {
    await driven.full(shop({ a: [1] }));
    driven.driver.settings = 'off';
    kernel.calls.length = 0;
    expect(await driven.next(shop({ a: [2] }))).toEqual(applied(3));
    expect(kernel.calls).toEqual([`write first ${a} last`]);
  });
});

describe('foreign changes', () => {
  test('a heal reads and writes what another process may have changed, and what changed in the cluster', async () => {
    await driven.full(shop({ a: [1], b: [2], c: [3] }));
    kernel.entries.set(a, 'foreign');
    kernel.entries.set(c, 'not noticed');
    driven.driver.foreign.add(a);
    kernel.calls.length = 0;
    expect(await driven.heal(shop({ a: [1], b: [2, 4], c: [3] }))).toEqual(applied(2));
    expect(kernel.calls).toEqual(['read', `write ${a} ${b}`]);
    expect(await driven.full(shop({ a: [1], b: [2, 4], c: [3] }))).toEqual(applied(1));
  });

  test('a heal also removes services that are not wanted any more', async () => {
    await driven.full(shop({ a: [1], b: [2] }));
    driven.driver.foreign.add(a);
    expect(await driven.heal(shop({ a: [1] }))).toEqual(applied(1));
    expect(kernel.entries.has(b)).toBe(false);
  });

  test('a delta that meets a foreign change reads back and gets through in the same apply', async () => {
    await driven.full(shop({ a: [1], b: [2] }));
    kernel.entries.set(a, 'foreign');
    kernel.calls.length = 0;
    expect(await driven.next(shop({ a: [7], b: [2] }))).toEqual(applied(1));
    expect(kernel.calls).toEqual([`write ${a}`, 'read', `write ${a}`]);
  });

  test('a kernel that differs after each of three readings fails the apply; the next one reads', async () => {
    await driven.full(shop({ a: [1] }));
    let at = 0;
    kernel.on = (moment) => {
      if (moment === 'write') kernel.entries.set(a, `foreign ${at++}`);
    };
    expect(await driven.next(shop({ a: [2] }))).toMatchObject({
      status: 'failed',
      error: { name: 'KernelDiffersError' },
    });
    kernel.on = () => {};
    expect(await driven.next(shop({ a: [2] }))).toEqual(applied(1));
  });
});

describe('refusals', () => {
  const table = shop({ a: [1], b: [2], c: [3] });

  test.each([true, false])('a refused service is named and all others are written (group named: %s)', async (names) => {
    kernel.namesGroup = names;
    kernel.refused.add(b);
    expect(failedKeys(await driven.full(table))).toEqual([b]);
    expect([kernel.entries.has(a), kernel.entries.has(c), kernel.entries.get('last')]).toEqual([true, true, 'on']);
  });

  test('it is written by the delta that names it again, as often as it takes, and without a read', async () => {
    kernel.refused.add(b);
    await driven.full(table);
    kernel.calls.length = 0;
    expect(failedKeys(await driven.next(table))).toEqual([b]);
    kernel.refused.clear();
    expect(await driven.next(table)).toEqual(applied(1));
    expect(kernel.calls).toEqual([`write ${b}`, `write ${b}`]);
  });

  test('a refused change leaves what the kernel held, and may become another change or none', async () => {
    await driven.full(table);
    kernel.refused.add(b);
    expect(failedKeys(await driven.next(shop({ a: [1], b: [8], c: [3] })))).toEqual([b]);
    expect(kernel.entries.get(b)).toBe('10.0.0.2');
    expect(await driven.next(table)).toEqual(applied(0));
  });

  test('a refused removal is tried again', async () => {
    await driven.full(table);
    kernel.refused.add(b);
    expect(failedKeys(await driven.next(shop({ a: [1], c: [3] })))).toEqual([b]);
    kernel.refused.clear();
    expect(await driven.next(shop({ a: [1], c: [3] }))).toEqual(applied(1));
    expect(kernel.entries.has(b)).toBe(false);
  });

  test('a service that cannot be rendered is named, and keeps what it had', async () => {
    await driven.full(table);
    expect(failedKeys(await driven.next(shop({ a: [1, 2, 3, 4], b: [9], c: [3] })))).toEqual([a]);
    expect([kernel.entries.get(a), kernel.entries.get(b)]).toEqual(['10.0.0.1', '10.0.0.9']);
  });

  test('when the budget is spent the rest of that write counts as failed, later writes are tried', async () => {
    const names = Array.from({ length: 12 }, (_, index) => `s${String(index).padStart(2, '0')}`);
    for (const name of names.slice(0, 11)) kernel.refused.add(keyOf(name));
    const many = shop(Object.fromEntries(names.map((name, index) => [name, [index]])));
    const outcome = await driven.full(many);
    expect(failedKeys(outcome)).toEqual(names.slice(0, 11).map(keyOf));
    expect(kernel.calls.filter((call) => call.startsWith('write')).length).toBeLessThan(16);
    kernel.refused.clear();
    expect(await driven.next(many)).toEqual(applied(11));
  });

  test('refused settings fail the apply; the next one reads and writes them', async () => {
    kernel.refused.add('first');
    expect(await driven.full(table)).toMatchObject({ status: 'failed', error: { code: 'memory.refused' } });
    kernel.refused.clear();
    expect(await driven.next(table)).toEqual(applied(5));
  });

  test('a stale object that cannot be removed is reported and fails nothing; the next full apply tries again', async () => {
    kernel.entries.set('old', 'x');
    kernel.refused.add('old');
    const outcome = await driven.full(table);
    expect(outcome).toMatchObject({
      status: 'applied',
      writes: 5,
      unremoved: { message: 'cannot remove entry old: refused' },
    });
    kernel.refused.clear();
    expect(await driven.full(table)).toEqual(applied(1));
    expect(kernel.entries.has('old')).toBe(false);
  });
});

describe('an apply that ends early', () => {
  const before = shop({ a: [1], b: [2] });
  const after = shop({ a: [5], b: [6], c: [7] });
  const lost = new HostError('memory.lost', 'no answer from the kernel');

  async function endAt(moment: 'read' | 'write' | 'written', how: () => void): Promise<ApplyOutcome> {
    kernel.on = (now) => {
      if (now === moment) how();
    };
    try {
      return await (moment === 'read' ? driven.full(after) : driven.next(after));
    } finally {
      kernel.on = () => {};
    }
  }
  const fail = (): never => {
    throw lost;
  };

  beforeEach(async () => {
    await driven.full(before);
  });

  test.each(['read', 'write', 'written'] as const)(
    'by an error of the host at "%s" has failed; the next delta reads back and writes the rest',
    async (moment) => {
      expect(await endAt(moment, fail)).toEqual({ status: 'failed', error: lost });
      kernel.calls.length = 0;
      expect(await driven.next(after)).toEqual(applied(moment === 'written' ? 0 : 3));
      expect(kernel.calls[0]).toBe('read');
      expect(await new Driven(kernel).full(after)).toEqual(applied(0));
    },
  );

  test.each(['read', 'write', 'written'] as const)(
    'by an abort at "%s" rejects with its reason; the next delta reads back and writes the rest',
    async (moment) => {
      const reason = new Error('shutting down');
      await expect(endAt(moment, () => driven.abort(reason))).rejects.toBe(reason);
      kernel.calls.length = 0;
      expect(await driven.next(after)).toEqual(applied(moment === 'written' ? 0 : 3));
      expect(kernel.calls[0]).toBe('read');
    },
  );
});

describe('ServiceTracker', () => {
  test('a service port is applied, dirty or unknown by what is held of it', () => {
    const tracker = new ServiceTracker<HeldEntry>();
    const [first, second] = [shop({ a: [1] }), shop({ a: [2] })].map(({ services }) => services.get(a)!);
    tracker.set(a, { service: first, value: 'x' });
    expect([tracker.isApplied(first!), tracker.isApplied(second!)]).toEqual([true, false]);
    tracker.set(a, { service: undefined, value: 'y' });
    expect([tracker.isApplied(first!), tracker.get(a)?.value]).toEqual([false, 'y']);
    expect([[...tracker.clear().keys()], [...tracker.keys()], tracker.get(a)]).toEqual([[a], [], undefined]);
  });
});
