import { FakeNft } from '@switchyard/backend-nftables/testing';
import { type ApplyOutcome, type DataplaneBackend } from '@switchyard/core/engine';
import { diffTables, type ForwardingTable, HostError, type IpFamily, parseIp, parsePort } from '@switchyard/core';
import { addressNumber, here, situation, there } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import type { MapSet } from './kernel/kernel.ts';
import { dumpMaps } from './kernel/maps/dump.ts';
import { openMemoryBackend } from './testing/memory-backend.ts';
import { MemoryMachine } from './testing/memory-kernel.ts';
import { pickOutcomes } from './testing/trace-packet.ts';

const signal = new AbortController().signal;
const vip = '198.51.100.7';
const endpoints = [here('10.244.1.1'), there('10.244.2.1')];
type Specs = Parameters<typeof situation>[0];
const cart: Specs = { cart: { endpoints, ports: [{ port: 80, nodePort: 30080 }], loadBalancerIps: [vip] } };
const ranged: Specs = { cart: { ...cart['cart'], sourceRanges: ['192.0.2.0/24'] } };
const withSctp: Specs = {
  ...cart,
  signal: { endpoints, clusterIps: ['10.96.0.11'], ports: [{ port: 80, protocol: 'SCTP' }] },
};

/** A machine without a kernel, and one backend on it. */
class Driven {
  readonly machine = new MemoryMachine();
  readonly nft = new FakeNft();
  readonly #northSouth: 'tc' | 'nftables';
  #last: ForwardingTable | undefined;
  backend!: DataplaneBackend; // opened before anybody gets this

  private constructor(northSouth: 'tc' | 'nftables') {
    this.#northSouth = northSouth;
  }

  static async open(northSouth: 'tc' | 'nftables', family: IpFamily = 'IPv4'): Promise<Driven> {
    const driven = new Driven(northSouth);
    driven.backend = await driven.another(family);
    return driven;
  }

  /** Another instance on the same machine. */
  another(family: IpFamily = 'IPv4'): Promise<DataplaneBackend> {
    const { machine, nft } = this;
    return openMemoryBackend(
      { machine, openTransport: nft.openTransport, northSouth: this.#northSouth, addresses: [] },
      family,
      signal,
    );
  }

  full(table: ForwardingTable, until: AbortSignal = signal): Promise<ApplyOutcome> {
    this.#last = table;
    return this.backend.apply({ table, scope: { kind: 'full' } }, until);
  }

  next(table: ForwardingTable): Promise<ApplyOutcome> {
    const delta = diffTables(this.#last, table);
    this.#last = table;
    return this.backend.apply({ table, scope: { kind: 'delta', delta } }, signal);
  }

  /** Frontends that rules carry. */
  rules(): readonly string[] {
    if (this.nft.ruleset.tables.size === 0) return [];
    return this.nft.elements('switchyard-ebpf', 'frontends4').map((text) => text.split(' : ')[0] ?? '');
  }
}

describe('what is written where', () => {
  test('where a device can have no program, rules carry all of the table beside programs, from the next full apply on', async () => {
    const { machine, nft } = await Driven.open('tc');
    let [hasBridge, removals] = [false, 0];
    const wire = {
      needsRules: async () => hasBridge,
      remove: async () => {
        removals++;
        return [];
      },
    };
    const opening = { machine, openTransport: nft.openTransport, northSouth: 'tc', addresses: [], wire } as const;
    const backend = await openMemoryBackend(opening, 'IPv4', signal);
    const elements = (): readonly string[] => nft.elements('switchyard-ebpf', 'frontends4');
    const apply = () => backend.apply({ table: situation(cart), scope: { kind: 'full', after: 'drift' } }, signal);
    await apply();
    expect(elements()).toEqual([]);
    hasBridge = true;
    expect(await apply()).toMatchObject({ status: 'applied' });
    expect(elements().map((text) => text.split(' : ')[0])).toEqual(['10.96.0.10 . tcp . 80', `${vip} . tcp . 80`]);
    expect([machine.isAttached('IPv4'), removals]).toEqual([true, 0]);
    expect(await apply()).toMatchObject({ status: 'applied', writes: 0 });
  });

  test.each<['tc' | 'nftables', Specs, readonly string[]]>([
    ['nftables', cart, ['10.96.0.10 . tcp . 80', `${vip} . tcp . 80`]],
    ['tc', cart, []],
    ['tc', ranged, [`${vip} . tcp . 80`]],
    ['tc', withSctp, ['10.96.0.11 . sctp . 80']],
  ])('with %s north-south, of %j rules carry %j', async (northSouth, specs, rules) => {
    const driven = await Driven.open(northSouth);
    expect(await driven.full(situation(specs))).toMatchObject({ status: 'applied' });
    expect(driven.rules()).toEqual(rules);
    expect(await driven.backend.dump(signal)).toContain('10.96.0.10');
    expect(driven.machine.isAttached('IPv4')).toBe(true);
  });

  test.each(['tc', 'nftables'] as const)('by differences as in full, with %s', async (northSouth) => {
    const tables = [cart, ranged, withSctp, {}, cart].map((specs) => situation(specs));
    const driven = await Driven.open(northSouth);
    for (const [index, table] of tables.entries()) {
      expect(await (index === 0 ? driven.full(table) : driven.next(table))).toMatchObject({ status: 'applied' });
      const other = await Driven.open(northSouth);
      await other.full(table);
      expect(await driven.backend.dump(signal)).toBe(await other.backend.dump(signal));
    }
  });

  test('a cluster IP outside of all service CIDRs, added by a delta, is guarded', async () => {
    const elsewhere: Specs = { ...cart, far: { endpoints, clusterIps: ['10.200.0.10'] } };
    const [before, after] = [cart, elsewhere].map((specs) => situation(specs, { serviceCidrs: ['10.96.0.0/16'] }));
    const driven = await Driven.open('tc');
    await driven.full(before as ForwardingTable);
    const outcomes = () =>
      pickOutcomes(driven.machine.mapsOf('IPv4') as MapSet, {
        destination: parseIp('10.200.0.10'),
        port: parsePort(81),
        protocol: 'TCP',
        from: 'pod',
        client: { kind: 'networkNamespace', cookie: 2n },
      });
    expect(outcomes()).toEqual([{ kind: 'pass' }]);
    await driven.next(after as ForwardingTable);
    expect(outcomes()).toEqual([{ kind: 'reject' }]);
  });

  test('another instance finds all of it, and writes nothing', async () => {
    const driven = await Driven.open('tc');
    await driven.full(situation(withSctp));
    const before = await driven.backend.dump(signal);
    driven.backend = await driven.another();
    expect(await driven.backend.dump(signal)).toBe(before);
    expect(await driven.full(situation(withSctp))).toEqual({ status: 'applied', writes: 0 });
    expect(await driven.next(situation(withSctp))).toMatchObject({ status: 'applied' });
  });

  test('maps grow for what does not fit', async () => {
    const many = (count: number): ForwardingTable =>
      situation(
        Object.fromEntries(
          Array.from({ length: count }, (_, index) => [
            `s${index}`,
            { clusterIps: [addressNumber(10, 0x600000 + index)], endpoints: [there(addressNumber(10, index))] },
          ]),
        ),
      );
    const driven = await Driven.open('tc');
    await driven.full(many(10));
    expect(driven.machine.mapsOf('IPv4')?.services.shape.maxEntries).toBe(4096);
    expect(await driven.next(many(5000))).toMatchObject({ status: 'applied' });
    expect(driven.machine.mapsOf('IPv4')?.services.shape.maxEntries).toBeGreaterThanOrEqual(8192);
    const other = await Driven.open('tc');
    await other.full(many(5000));
    expect(await driven.backend.dump(signal)).toBe(await other.backend.dump(signal));
  });
});

describe('a service that moves between programs and rules', () => {
  /** Whether sockets ignored the VIP during each transaction of nft. */
  function passesAt(driven: Driven): readonly string[] {
    const seen: string[] = [];
    const { nft } = driven;
    nft.beforeTransaction = () => {
      seen.push(isPassed(driven) ? 'passes' : 'carried');
    };
    return seen;
  }

  function isPassed({ machine }: Driven, address: string = vip): boolean {
    const maps = machine.mapsOf('IPv4');
    const lines =
      maps === undefined
        ? []
        : dumpMaps(maps)
            .split('\n')
            .filter((line) => line.includes(address));
    return lines.some((line) => line.includes('sockets'));
  }

  test('is in the rules before programs let it pass', async () => {
    const driven = await Driven.open('tc');
    await driven.full(situation(cart));
    const seen = passesAt(driven);
    await driven.next(situation(ranged));
    expect([seen[0], isPassed(driven)]).toEqual(['carried', true]);
    expect(driven.rules()).toEqual([`${vip} . tcp . 80`]);
  });

  test('stays in the rules until programs carry it', async () => {
    const driven = await Driven.open('tc');
    await driven.full(situation(ranged));
    const seen = passesAt(driven);
    await driven.next(situation(cart));
    expect([seen.length > 0, seen.includes('passes')]).toEqual([true, false]);
    expect(driven.rules()).toEqual([]);
  });

  test('so it is where it moved while no agent ran, and others the other way', async () => {
    const driven = await Driven.open('tc');
    const other = '198.51.100.8';
    const beside: Specs = { beside: { endpoints, clusterIps: ['10.96.0.12'], loadBalancerIps: [other] } };
    const besideRanged: Specs = { beside: { ...beside['beside'], sourceRanges: ['192.0.2.0/24'] } };
    await driven.full(situation({ ...cart, ...besideRanged }));
    const seen: string[] = [];
    const { nft } = driven;
    const note = (): void => {
      const carriers = [vip, other].map((address) => {
        const isInRules = driven.rules().includes(`${address} . tcp . 80`);
        return isInRules ? 'rules' : isPassed(driven, address) ? 'neither' : 'programs';
      });
      seen.push(carriers.join(' '));
    };
    nft.beforeTransaction = note;
    nft.afterTransaction = note;
    driven.backend = await driven.another();
    expect(await driven.full(situation({ ...ranged, ...beside }))).toMatchObject({ status: 'applied' });
    expect([...new Set(seen)]).toEqual(['programs rules', 'rules rules', 'rules programs']);
    expect(isPassed(driven)).toBe(true);
    expect(driven.rules()).toEqual([`${vip} . tcp . 80`]);
  });

  test('is left to programs as long as rules refuse it', async () => {
    const driven = await Driven.open('tc');
    await driven.full(situation(cart));
    const before = await driven.backend.dump(signal);
    driven.nft.refusing = /198\.51\.100\.7/;
    const outcome = await driven.next(situation(ranged));
    expect(outcome).toMatchObject({ status: 'partial' });
    expect((await driven.backend.dump(signal)).split('\n').filter((line) => line.includes(vip))).toEqual(
      before.split('\n').filter((line) => line.includes(vip)),
    );
    driven.nft.refusing = undefined;
    expect(await driven.full(situation(ranged))).toMatchObject({ status: 'applied' });
    expect(driven.rules()).toEqual([`${vip} . tcp . 80`]);
  });
});

describe('what goes wrong', () => {
  test('a service that the maps refuse is named, all others are there', async () => {
    const driven = await Driven.open('tc');
    driven.machine.refuse('10.96.0.10');
    const outcome = await driven.full(situation({ ...cart, other: { endpoints, clusterIps: ['10.96.0.12'] } }));
    expect(outcome.status === 'partial' && [...outcome.failed.keys()]).toEqual(['shop/cart:/TCP']);
    expect(await driven.backend.dump(signal)).toContain('10.96.0.12');
    driven.machine.refuse(undefined);
    expect(await driven.next(situation(cart))).toMatchObject({ status: 'applied' });
  });

  test('an abort rejects with its reason, and the next apply makes it good', async () => {
    const driven = await Driven.open('nftables');
    await driven.full(situation(cart));
    const reason = new HostError('test.enough', 'enough');
    await expect(driven.full(situation(withSctp), AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(await driven.next(situation(withSctp))).toMatchObject({ status: 'applied' });
    const other = await Driven.open('nftables');
    await other.full(situation(withSctp));
    expect(await driven.backend.dump(signal)).toBe(await other.backend.dump(signal));
  });

  test('what others changed in the maps is written again', async () => {
    const driven = await Driven.open('tc');
    await driven.full(situation(cart));
    const before = await driven.backend.dump(signal);
    const maps = driven.machine.mapsOf('IPv4')!;
    maps.frontends.delete(maps.frontends.entries().keys.slice(0, 24));
    driven.machine.detach('IPv4');
    expect(await driven.backend.dump(signal)).not.toBe(before);
    const scripts = driven.nft.scripts.length;
    const outcome = await driven.backend.apply(
      { table: situation(cart), scope: { kind: 'full', after: 'drift' } },
      signal,
    );
    expect(outcome).toMatchObject({ status: 'applied' });
    expect([await driven.backend.dump(signal), driven.machine.isAttached('IPv4')]).toEqual([before, true]);
    expect(driven.nft.scripts.length).toBe(scripts); // the rules were not written
  });
});

describe('removal', () => {
  test('takes everything away, without memory, and says so', async () => {
    const driven = await Driven.open('tc');
    await driven.full(situation(withSctp));
    const cleaner = await driven.another();
    expect((await cleaner.cleanup(signal)).length).toBeGreaterThan(0);
    expect([driven.machine.isEmpty, driven.nft.ruleset.tables.size, await cleaner.dump(signal)]).toEqual([true, 0, '']);
    expect(await cleaner.cleanup(signal)).toEqual([]);
  });

  test('of one family leaves the other', async () => {
    const driven = await Driven.open('tc');
    await driven.full(situation(withSctp));
    const v6 = await driven.another('IPv6');
    const table = situation({}, { ipFamily: 'IPv6' });
    expect(await v6.apply({ table, scope: { kind: 'full' } }, signal)).toMatchObject({ status: 'applied' });
    await v6.cleanup(signal);
    expect(driven.machine.isAttached('IPv4')).toBe(true);
    expect(driven.rules()).toEqual(['10.96.0.11 . sctp . 80']);
  });

  test('of an unused wire goes on until nothing is found, and a clean-up looks again', async () => {
    const found = [['a program'], [], ['what came later']];
    let looks = 0;
    const remove = async () => found[looks++] ?? [];
    const host = {
      machine: new MemoryMachine(),
      openTransport: new FakeNft().openTransport,
      northSouth: 'nftables',
      addresses: [],
    } as const;
    const backend = await openMemoryBackend({ ...host, wire: { remove } }, 'IPv4', signal);
    for (const expected of [1, 2, 2, 2]) {
      await backend.apply({ table: situation(cart), scope: { kind: 'full' } }, signal);
      expect(looks).toBe(expected);
    }
    expect(await backend.cleanup(signal)).toContain('what came later');
  });

  test('of a wire that came up halfway is done when it is not used any more', async () => {
    let [isUsed, looks] = [false, 0];
    const wire = {
      isUsed: async () => isUsed,
      ensure: () => Promise.reject(new HostError('test.wire', 'not on all devices')),
      remove: async () => (looks++, []),
    };
    const { openTransport } = new FakeNft();
    const host = { machine: new MemoryMachine(), openTransport, northSouth: 'tc', addresses: [] } as const;
    const backend = await openMemoryBackend({ ...host, wire }, 'IPv4', signal);
    const status: string[] = [];
    for (isUsed of [false, true, false]) {
      status.push((await backend.apply({ table: situation(cart), scope: { kind: 'full' } }, signal)).status);
    }
    expect([status, looks]).toEqual([['applied', 'failed', 'applied'], 2]);
  });
});
