import { type ApplyRequest } from '@switchyard/core/engine';
import { type ForwardingTable, HostError } from '@switchyard/core';
import { here, situation, there } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import type { TableDescription } from '../../src/render/rules/model.ts';
import { skeleton } from '../../src/render/skeleton.ts';
import { FakeNft } from '../../src/testing/fake-nft.ts';
import { Driven, signal, withBirthmark } from './support.ts';

const ports = [{ port: 80, nodePort: 30080 }];
const cart = (...endpoints: readonly ReturnType<typeof here>[]): ForwardingTable => situation({ cart: { endpoints } });
const lb = (...endpoints: readonly ReturnType<typeof here>[]): ForwardingTable =>
  situation({
    cart: { ports, external: 'Local', loadBalancerIps: ['198.51.100.7'], externalIps: ['198.51.100.8'], endpoints },
  });

describe('the cost of a change, in element writes', () => {
  const two = [there('10.244.2.1'), there('10.244.2.2')];
  const [first] = two;
  test.each<[what: string, before: ForwardingTable, after: ForwardingTable, writes: number, transactions?: number]>([
    ['one endpoint added: its slot, and the set that leads to it', cart(...two), cart(...two, there('10.244.2.3')), 3],
    ['one endpoint added on this node: the same, and its hairpin', cart(...two), cart(...two, here('10.244.1.3')), 4],
    ['the last of two endpoints removed', cart(...two), cart(first!), 3],
    ['the first of two endpoints removed: the last moves into its slot', cart(...two), cart(two[1]!), 5],
    ['one endpoint replaced', cart(...two), cart(first!, there('10.244.2.9')), 2],
    ['the first endpoint: set, slot, and the frontend no longer rejects', cart(), cart(first!), 4],
    ['the last endpoint gone', cart(first!), cart(), 4, 2],
    [
      'a remote endpoint added under four frontends of a Local Service: no more, but its hairpin',
      lb(...two),
      lb(...two, there('10.244.2.3')),
      4,
    ],
    ['a Service with one endpoint added', situation({}), cart(first!), 4],
    ['a Service with one endpoint removed', cart(first!), situation({}), 4],
    ['nothing', cart(...two), cart(...two), 0],
  ])('%s', async (_, before, after, writes, transactions = 1) => {
    const driven = await Driven.open();
    await driven.full(before);
    const scripts = driven.nft.scripts.length;
    expect(await driven.next(after)).toEqual({ status: 'applied', writes });
    expect(driven.nft.scripts.length - scripts).toBe(writes === 0 ? 0 : transactions);
  });

  test('1000 endpoints stand in 8192 slots; one more moves its share of 8, and adds nothing', async () => {
    const many = (count: number): ForwardingTable =>
      cart(...Array.from({ length: count }, (_, index) => there(`10.244.${index >> 8}.${index & 255}`)));
    const driven = await Driven.open();
    expect(await driven.full(many(1000))).toEqual({ status: 'applied', writes: 8192 + 3 + 2 });
    expect(await driven.next(many(1001))).toEqual({ status: 'applied', writes: 16 });
    expect((await driven.dump()).match(/10\.244\.\d+\.\d+:8080/g)).toHaveLength(1001);
  });
});

describe('settings', () => {
  test('a changed pod CIDR replaces one set and no rule', async () => {
    const driven = await Driven.open();
    await driven.full(situation({}));
    await driven.next(situation({}, { podCidr: '10.200.0.0/14' }));
    expect(driven.script).toBe(
      'flush set inet switchyard pod-cidrs4\nadd element inet switchyard pod-cidrs4 { 10.200.0.0/14 }\n',
    );
  });

  test.each([
    [{ kind: 'interface', name: 'cni0' }, '"cni0"'],
    [{ kind: 'interfacePrefix', prefix: 'veth' }, '"veth*"'],
    [{ kind: 'interfacePrefix', prefix: 'a23456789012345' }, '"a23456789012345"'],
  ] as const)('pods told by %j instead of by CIDR replace two sets and no rule', async (podDetector, content) => {
    const driven = await Driven.open();
    await driven.full(situation({}));
    expect(await driven.next(situation({}, { podDetector }))).toEqual({ status: 'applied', writes: 2 });
    expect(driven.script).toBe(
      `flush set inet switchyard pod-cidrs4
flush set inet switchyard pod-interfaces4
add element inet switchyard pod-interfaces4 { ${content} }
`,
    );
    const again = await Driven.open(driven.nft);
    expect(await again.full(situation({}, { podDetector }))).toEqual({ status: 'applied', writes: 0 });
    expect(await again.dump()).toContain(`pod-interfaces4: ${content}\n`);
  });

  test('so do changed NodePort addresses and an added ServiceCIDR', async () => {
    const driven = await Driven.open();
    await driven.full(situation({}, { nodePortCidrs: ['192.0.2.1/32'], serviceCidrs: ['10.96.0.0/16'] }));
    const changed = { nodePortCidrs: ['192.0.2.2/32'], serviceCidrs: ['10.96.0.0/16', '10.97.0.0/16'] };
    expect(await driven.next(situation({}, changed))).toEqual({ status: 'applied', writes: 2 });
    expect(driven.script).toBe(`flush set inet switchyard nodeport-ips4
add element inet switchyard nodeport-ips4 { 192.0.2.2/32 }
flush set inet switchyard service-cidrs4
add element inet switchyard service-cidrs4 { 10.96.0.0/16, 10.97.0.0/16 }
`);
  });

  test('overlapping CIDRs are one interval', async () => {
    const driven = await Driven.open();
    const nodePortCidrs = ['10.0.0.0/8', '10.1.0.0/16', '192.0.2.0/24', '10.0.0.0/8'];
    expect(await driven.full(situation({}, { nodePortCidrs }))).toMatchObject({ status: 'applied' });
    expect(driven.nft.elements('switchyard', 'nodeport-ips4')).toEqual(['10.0.0.0/8', '192.0.2.0/24']);
  });
});

describe('adoption by a process with no memory', () => {
  test('finds its own state and writes nothing', async () => {
    const nft = new FakeNft();
    await (await Driven.open(nft)).full(lb(here('10.244.1.1'), there('10.244.2.1')));
    const scripts = nft.scripts.length;
    const restarted = await Driven.open(nft);
    expect(await restarted.full(lb(here('10.244.1.1'), there('10.244.2.1')))).toEqual({ status: 'applied', writes: 0 });
    expect(nft.scripts.length).toBe(scripts);
  });

  test('writes only what changed meanwhile, keeping ids and slots', async () => {
    const nft = new FakeNft();
    const first = await Driven.open(nft);
    await first.full(
      situation({
        gone: { clusterIps: ['10.96.0.9'] },
        cart: { endpoints: [there('10.244.2.1'), there('10.244.2.2')] },
      }),
    );
    const restarted = await Driven.open(nft);
    expect(await restarted.full(cart(there('10.244.2.2'), there('10.244.2.3')))).toEqual({
      status: 'applied',
      writes: 4,
    });
    expect(restarted.script).toBe(`delete element inet switchyard endpoints4 { 0x2 . 0 }
add element inet switchyard endpoints4 { 0x2 . 0 : 10.244.2.3 . 8080 }
delete element inet switchyard cluster-ips4 { 10.96.0.9 }
delete element inet switchyard frontends4 { 10.96.0.9 . tcp . 80 }
`);
  });

  test('does not give the id of a leftover to a new service', async () => {
    const nft = new FakeNft();
    await (
      await Driven.open(nft)
    ).full(situation({ old: { clusterIps: ['10.96.0.9'], endpoints: [there('10.244.2.1')] } }));
    await (await Driven.open(nft)).full(cart(there('10.244.2.5')));
    expect(nft.elements('switchyard', 'frontends4')).toEqual(['10.96.0.10 . tcp . 80 : 0x4500002']);
    expect(nft.elements('switchyard', 'endpoints4')).toEqual(['0x4 . 0 : 10.244.2.5 . 8080']);
  });

  test('heals foreign changes of elements in its own sets', async () => {
    const driven = await Driven.open();
    const table = cart(there('10.244.2.1'));
    await driven.full(table);
    const want = await driven.dump();
    driven.nft.ruleset.transaction(`delete element inet switchyard frontends4 { 10.96.0.10 . tcp . 80 }
add element inet switchyard cluster-ips4 { 10.96.0.66 }
add element inet switchyard pod-cidrs4 { 172.20.0.0/16 }
`);
    expect(await driven.full(table)).toEqual({ status: 'applied', writes: 3 });
    expect(await driven.dump()).toBe(want);
  });
});

describe('when the kernel holds something else than was thought', () => {
  test('a delta on a flushed ruleset writes everything again', async () => {
    const driven = await Driven.open();
    const both = situation({
      a: { clusterIps: ['10.96.0.1'], endpoints: [there('10.244.2.1')] },
      b: { clusterIps: ['10.96.0.2'] },
    });
    await driven.full(both);
    driven.nft.ruleset.tables.clear();
    const next = situation({
      a: { clusterIps: ['10.96.0.1'], endpoints: [there('10.244.2.2')] },
      b: { clusterIps: ['10.96.0.2'] },
    });
    expect(await driven.next(next)).toMatchObject({ status: 'applied' });
    const dump = await driven.dump();
    expect([dump.includes('10.244.2.2'), dump.includes('10.96.0.2')]).toEqual([true, true]);
  });

  test('a delta that hits a foreign element reads back and gets through', async () => {
    const driven = await Driven.open();
    await driven.full(situation({}));
    driven.nft.ruleset.transaction('add element inet switchyard frontends4 { 10.96.0.10 . tcp . 80 : 0x300777 }\n');
    expect(await driven.next(cart(there('10.244.2.1')))).toMatchObject({ status: 'applied' });
    expect(await driven.dump()).toContain('to-cluster: 10.244.2.1:8080');
  });
});

describe('when the kernel refuses', () => {
  const names = Array.from({ length: 20 }, (_, index) => `s${index}`);
  const many = situation(
    Object.fromEntries(
      names.map((name, index) => [name, { clusterIps: [`10.96.1.${index}`], endpoints: [there(`10.244.2.${index}`)] }]),
    ),
  );

  test('one service, all others are written and the culprit is named', async () => {
    const driven = await Driven.open();
    driven.nft.refusing = /10\.244\.2\.7 /;
    const outcome = await driven.full(many);
    expect(outcome.status === 'partial' && [...outcome.failed.keys()]).toEqual(['shop/s7:/TCP']);
    const dump = await driven.dump();
    expect([dump.includes('10.244.2.7:'), dump.match(/10\.244\.2\.\d+:8080/g)?.length]).toEqual([false, 19]);
    driven.nft.refusing = undefined;
    expect(await driven.next(many)).toEqual({ status: 'applied', writes: 4 });
  });

  test('everything, the search ends', async () => {
    const driven = await Driven.open();
    await driven.full(situation({}));
    driven.nft.refusing = /10\.244\.2\./;
    const outcome = await driven.next(many);
    expect(outcome.status === 'partial' && outcome.failed.size).toBe(20);
  });

  test('the rules, nothing was changed', async () => {
    const driven = await Driven.open();
    driven.nft.refusing = /chain services/;
    expect(await driven.full(many)).toMatchObject({ status: 'failed', error: { name: 'NftError' } });
    expect(driven.nft.ruleset.tables.size).toBe(0);
  });

  test('a setting, the apply has failed', async () => {
    const driven = await Driven.open();
    driven.nft.refusing = /pod-cidrs4 \{ /;
    driven.nft.ruleset.load(skeleton('switchyard'));
    expect(await driven.full(many)).toMatchObject({ status: 'failed' });
    driven.nft.refusing = undefined;
    expect(await driven.full(many)).toMatchObject({ status: 'applied' });
  });

  test('10 % of all transactions fail: applied in the end', async () => {
    const driven = await Driven.open();
    let seed = 7;
    driven.nft.failures = { rate: 0.1, random: () => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647 };
    let outcome = await driven.full(many);
    let rounds = 0;
    while (outcome.status !== 'applied' && rounds++ < 50) outcome = await driven.next(many);
    driven.nft.failures = { rate: 0, random: () => 1 };
    const fresh = await Driven.open();
    await fresh.full(many);
    expect([outcome.status, await driven.dump()]).toEqual(['applied', await fresh.dump()]);
  });

  test('a service with more endpoints than a set holds is named; the others are written', async () => {
    const endpoints = Array.from({ length: 65_537 }, (_, index) =>
      there(`10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`),
    );
    const driven = await Driven.open();
    const outcome = await driven.full(
      situation({ huge: { clusterIps: ['10.96.0.1'], endpoints }, cart: { endpoints: [there('10.244.2.1')] } }),
    );
    expect(outcome.status === 'partial' && [...outcome.failed].map(([key, error]) => [key, error.message])).toEqual([
      ['shop/huge:/TCP', expect.stringContaining('65537 endpoints, one set holds 65536')],
    ]);
    expect(await driven.dump()).toContain('10.244.2.1:8080');
  });
});

describe('two families in one table', () => {
  const six = situation(
    { cart: { clusterIps: ['fd00:10:96::1'], endpoints: [there('fd00:10:244:2::1')] } },
    { ipFamily: 'IPv6' },
  );

  test('do not touch each other', async () => {
    const nft = new FakeNft();
    const [v4, v6] = [await Driven.open(nft), await Driven.open(nft, 'IPv6')];
    await Promise.all([v4.full(cart(there('10.244.2.1'))), v6.full(six)]);
    const before = await v6.dump();
    await v4.next(situation({}));
    await v4.full(cart(there('10.244.2.2')));
    expect([await v6.dump(), before.includes('[fd00:10:244:2::1]:8080')]).toEqual([before, true]);
    expect([...nft.ruleset.tables.keys()]).toEqual(['switchyard']);
  });

  test('cleanup of one leaves the other; cleanup of both leaves nothing', async () => {
    const nft = new FakeNft();
    const [v4, v6] = [await Driven.open(nft), await Driven.open(nft, 'IPv6')];
    await v4.full(cart(there('10.244.2.1')));
    await v6.full(six);
    const before = await v6.dump();
    await v4.backend.cleanup(signal);
    expect(await v6.dump()).toBe(before);
    expect(await v4.dump()).not.toContain('10.');
    await v6.backend.cleanup(signal);
    expect([...nft.ruleset.tables.keys()]).toEqual([]);
  });

  test('cleanup where nothing is does nothing, and leaves strangers alone', async () => {
    const driven = await Driven.open();
    driven.nft.ruleset.load({ name: 'other', comment: '', items: [] });
    await driven.backend.cleanup(signal);
    expect([...driven.nft.ruleset.tables.keys()]).toEqual(['other']);
  });
});

describe('a table of another build', () => {
  /** The same rules under another birthmark. */
  const otherBuild = (name: string): TableDescription => withBirthmark(skeleton(name), 1);

  test.each([
    ['switchyard', 'switchyard-2'],
    ['switchyard-2', 'switchyard'],
  ])('named %s is replaced by one named %s, family by family', async (old, successor) => {
    const nft = new FakeNft();
    nft.ruleset.load(otherBuild(old));
    nft.ruleset.transaction(`add element inet ${old} frontends4 { 10.96.0.10 . tcp . 80 : 0x100001 }
add element inet ${old} frontends6 { fd00:10:96::1 . tcp . 80 : 0x100001 }
`);
    const v4 = await Driven.open(nft);
    expect(await v4.full(cart(there('10.244.2.1')))).toMatchObject({ status: 'applied' });
    expect([nft.elements(old, 'frontends4'), nft.elements(old, 'frontends6').length]).toEqual([[], 1]);
    const v6 = await Driven.open(nft, 'IPv6');
    await v6.full(situation({}, { ipFamily: 'IPv6' }));
    expect([...nft.ruleset.tables.keys()]).toEqual([successor]);
    expect(await v4.dump()).toContain('10.244.2.1:8080');
  });

  test('its frontends go first: a packet that they took finds its way to the end', async () => {
    const nft = new FakeNft();
    nft.ruleset.load(otherBuild('switchyard'));
    nft.ruleset.transaction(`add element inet switchyard frontends4 { 10.96.0.10 . tcp . 80 : 0x100001 }
add element inet switchyard cluster-ips4 { 10.96.0.10 }
add element inet switchyard to-cluster4 { 0x1 : 0x100002 }
add element inet switchyard frontends6 { fd00:10:96::1 . tcp . 80 : 0x100001 }
`);
    await (await Driven.open(nft)).full(cart(there('10.244.2.1')));
    expect(nft.scripts.slice(-2)).toEqual([
      'flush map inet switchyard frontends4\nflush set inet switchyard cluster-ips4\n',
      'flush map inet switchyard to-cluster4\n',
    ]);
    await (await Driven.open(nft, 'IPv6')).full(situation({}, { ipFamily: 'IPv6' }));
    expect(nft.scripts.slice(-2)).toEqual(['flush map inet switchyard frontends6\n', 'delete table inet switchyard\n']);
  });

  test('goes on forwarding until ours holds everything', async () => {
    const nft = new FakeNft();
    nft.ruleset.load(otherBuild('switchyard'));
    nft.ruleset.transaction('add element inet switchyard frontends4 { 10.96.0.10 . tcp . 80 : 0x100001 }\n');
    nft.refusing = /10\.244\.2\.1 /;
    const v4 = await Driven.open(nft);
    expect(await v4.full(cart(there('10.244.2.1')))).toMatchObject({ status: 'partial' });
    expect(nft.elements('switchyard', 'frontends4')).toHaveLength(1);
    nft.refusing = undefined;
    expect(await v4.next(cart(there('10.244.2.1')))).toMatchObject({ status: 'applied' });
    expect([...nft.ruleset.tables.keys()]).toEqual(['switchyard-2']);
  });

  test('two of them leave one name to take', async () => {
    const nft = new FakeNft();
    for (const name of ['switchyard', 'switchyard-2']) nft.ruleset.load(otherBuild(name));
    expect(await (await Driven.open(nft)).full(cart(there('10.244.2.1')))).toMatchObject({ status: 'applied' });
    expect([...nft.ruleset.tables.keys()]).toEqual(['switchyard-2']);
  });
});

describe('what is no refusal', () => {
  test('an abort rejects with its reason, and the next apply reads the kernel back', async () => {
    const driven = await Driven.open();
    const table = cart(there('10.244.2.1'));
    const reason = new Error('stop');
    const request = { table, scope: { kind: 'full' } } as const;
    await expect(driven.backend.apply(request, AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(await driven.next(table)).toMatchObject({ status: 'applied' });
  });

  test('a kernel that does not answer is a failed apply', async () => {
    const nft = new FakeNft();
    nft.beforeTransaction = () => {
      throw new HostError('nftables.noAnswer', 'no answer');
    };
    const outcome = await (await Driven.open(nft)).full(situation({}));
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'nftables.noAnswer' } });
  });

  test('disposal leaves forwarding in place', async () => {
    const driven = await Driven.open();
    await driven.full(cart(there('10.244.2.1')));
    await driven.backend[Symbol.asyncDispose]();
    expect(await driven.dump()).toContain('10.244.2.1:8080');
  });
});

test('a delta looks at no service that it does not name', async () => {
  const driven = await Driven.open();
  const before = cart(there('10.244.2.1'));
  await driven.full(before);
  const after = cart(there('10.244.2.2'));
  const services = new Proxy(after.services, {
    get: () => {
      throw new Error('the whole table was looked at');
    },
  });
  const scope = {
    kind: 'delta',
    delta: { upserted: [...after.services.values()], removed: [], settingsChanged: false },
  };
  const request = { table: { ...after, services }, scope } as const;
  expect(await driven.backend.apply(request as ApplyRequest, signal)).toEqual({ status: 'applied', writes: 2 });
});
