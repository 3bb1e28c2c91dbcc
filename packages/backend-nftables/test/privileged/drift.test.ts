import { type ClusterEvent, ipFamilies, seconds } from '@switchyard/core';
import { node, replaceAll, service, slice } from '@switchyard/core/testing';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Healing } from './healing.ts';
import { createSite, type Site, withoutAges } from './support.ts';

const vip = { IPv4: '10.96.0.10', IPv6: 'fd00:10:96::10' };
const frontend = { IPv4: '10.96.0.10 . tcp . 80', IPv6: 'fd00:10:96::10 . tcp . 80' };

let site: Site;

beforeAll(async () => {
  site = await createSite('driftt');
});
afterAll(() => site[Symbol.asyncDispose]());

/** One Service of both families behind the near pod, and some without connections. */
function cluster(more = 20): readonly ClusterEvent[] {
  const { IPv4, IPv6 } = site.near.addresses;
  const others = Array.from({ length: more }, (_, index) => `shop/s${index}`);
  return replaceAll({
    services: [
      service('shop/cart', { clusterIps: [vip.IPv4, vip.IPv6] }),
      ...others.map((key, index) => service(key, { clusterIps: [`10.97.0.${index}`] })),
    ],
    slices: [
      slice('shop/cart', { endpoints: [{ ip: IPv4!, node: 'n1' }] }),
      slice('shop/cart', { name: 'cart-6', ipFamily: 'IPv6', endpoints: [{ ip: IPv6!, node: 'n1' }] }),
      ...others.map((key) => slice(key, { endpoints: ['10.244.9.1', '10.244.9.2'] })),
    ],
    nodes: [node('n1')],
  });
}

async function answers(family: 'IPv4' | 'IPv6' = 'IPv4'): Promise<string> {
  return (await site.pod.probe({ protocol: 'tcp', address: vip[family], port: 80, timeout: 300 })).status;
}

/** Limits for a busy machine; the design page has the measurements. */
const bound = seconds(5);

describe('over netlink', () => {
  let healing: Healing;
  let intact: string;

  beforeAll(async () => {
    healing = await Healing.start(site.node, cluster());
    intact = await healing.dump();
  });
  afterAll(() => healing[Symbol.asyncDispose]());

  test.each<[string, string, string, RegExp]>([
    ['flush ruleset', 'flush ruleset', 'table', /^table switchyard(-2)? deleted$/],
    ['a deleted table', 'delete table inet TABLE', 'table', /^table switchyard(-2)? deleted$/],
    [
      'a table put to sleep',
      'add table inet TABLE { flags dormant; }',
      'table',
      /^table switchyard(-2)? made or changed$/,
    ],
    ['a flushed chain', 'flush chain inet TABLE services', 'rule', /^rule of chain services deleted$/],
    ['a rule that drops everything', 'insert rule inet TABLE services drop', 'rule', /^rule added to chain services$/],
    [
      'another policy',
      'chain inet TABLE nat-prerouting { policy drop; }',
      'chain',
      /^chain nat-prerouting added or changed$/,
    ],
    [
      'a base chain in our table that drops everything',
      'add chain inet TABLE x { type filter hook prerouting priority -300; policy drop; }',
      'chain',
      /^chain x added or changed$/,
    ],
    [
      'a deleted element',
      `delete element inet TABLE frontends4 { ${frontend.IPv4} }`,
      'element',
      /^element 10\.96\.0\.10 \. tcp \. 80 deleted from frontends4$/,
    ],
    [
      'a frontend that leads elsewhere',
      `delete element inet TABLE frontends4 { ${frontend.IPv4} } ; add element inet TABLE frontends4 { ${frontend.IPv4} : 0x40000001 }`,
      'element',
      /^element 10\.96\.0\.10 \. tcp \. 80 (added to|deleted from) frontends4$/,
    ],
    [
      'no endpoints',
      'flush map inet TABLE endpoints4',
      'element',
      /^element 0x[0-9a-f]+ \. \d deleted from endpoints4$/,
    ],
    ['no CIDRs', 'flush set inet TABLE nodeport-ips4', 'element', /deleted from nodeport-ips4$/],
    ['no classes', 'flush map inet TABLE lb4-classes', 'element', /^element 0x[0-9a-f]+ deleted from lb4-classes$/],
    ['no marks', 'flush set inet TABLE rule-marks', 'element', /deleted from rule-marks$/],
  ])('%s is noticed, told and healed', async (_, damage, kind, change) => {
    const from = healing.lines;
    expect(await healing.heal(damage.replaceAll(' ; ', '\n'))).toBeLessThan(bound);
    const { fields } = await healing.line('drift: another process changed the rules', from);
    expect(fields).toMatchObject({ ipFamily: 'IPv4', kind, process: { name: 'nft' } });
    expect((fields['changes'] as readonly string[])[0]).toMatch(change);
    expect(await healing.dump()).toBe(intact);
    expect(await answers()).toBe('answered');
    await setTimeout(300);
    expect(healing.linesFrom(from).filter(({ message }) => message.startsWith('drift:'))).toHaveLength(1);
  });

  test('rules without marks are replaced, and the log says so', async () => {
    const from = healing.lines;
    await healing.heal('flush set inet TABLE rule-marks');
    const told = healing.linesFrom(from).map(({ message }) => message);
    expect(told).toContain('rules without marks are replaced: their state is unknown');
    expect(told).not.toContain('rules are not as they were loaded');
  });

  test('only what was deleted is written again', async () => {
    const from = healing.lines;
    await healing.heal(`delete element inet TABLE frontends4 { ${frontend.IPv4} }`);
    expect((await healing.line('applied', from)).fields).toMatchObject({
      scope: 'full',
      reason: 'resync',
      writes: 1,
    });
  });

  test('a foreign rule is deleted without another write', async () => {
    // A heartbeat writes its element by its own clock.
    const listing = async (): Promise<string> =>
      withoutAges(await healing.nft('list table inet TABLE')).replaceAll(
        /(?<=\tset heartbeat[46] \{\n(?:\t\t.*\n)*)\t\telements = .*\n/g,
        '',
      );
    const before = await listing();
    const from = healing.lines;
    await healing.heal('insert rule inet TABLE services drop\nadd rule inet TABLE dispatch4 accept');
    expect((await healing.line('applied', from)).fields).toMatchObject({ writes: 0 });
    expect(await listing()).toBe(before);
  });

  test('changes of the cluster, and resyncs, are no drift', async () => {
    const from = healing.lines;
    healing.push(cluster(40));
    await healing.line('applied', from);
    await setTimeout(500);
    expect(healing.linesFrom(from).map(({ message }) => message)).toEqual(['applied']);
    healing.push(cluster());
    await healing.line('applied', from + 1);
  });

  test('a change of rules that only concern the other family does not stay either', async () => {
    await healing.heal('insert rule inet TABLE dispatch6 drop');
    expect(await healing.nft('list chain inet TABLE dispatch6')).not.toContain('\tdrop');
  });

  test('tables of others stay as they are, also when ours is rewritten', async () => {
    const theirs = `table ip theirs {
	set allowed {
		type ipv4_addr
		elements = { 10.1.2.3, 10.1.2.4 }
	}

	chain input {
		type filter hook input priority filter; policy accept;
		ip saddr @allowed counter packets 0 bytes 0 accept
		tcp dport 12345 drop
	}
}
`;
    await healing.nft(theirs);
    const before = await healing.nft('list table ip theirs');
    await healing.heal('delete table inet TABLE');
    await healing.heal('flush chain inet TABLE services');
    await healing.heal('insert rule inet TABLE services drop');
    expect(await healing.nft('list table ip theirs')).toBe(before);
    await healing.cleanup();
    expect(await healing.nft('list ruleset')).toBe(before);
    await healing.nft('delete table ip theirs');
  });
});

describe('chains made at run time', () => {
  const many = Array.from({ length: 100 }, (_, index) => ({ ip: `10.244.8.${index}`, node: 'n2' }));
  const withChains = (): readonly ClusterEvent[] => [
    ...cluster(),
    { kind: 'upsert', resource: 'Service', item: service('shop/many', { clusterIps: ['10.98.0.1'] }) },
    { kind: 'upsert', resource: 'EndpointSlice', item: slice('shop/many', { endpoints: many }) },
    {
      kind: 'upsert',
      resource: 'Service',
      item: service('shop/cart', { clusterIps: [vip.IPv4], affinitySeconds: 60 }),
    },
  ];

  test('are right for the next process, also after traffic, and their damage is healed', async () => {
    const first = await Healing.start(site.node, withChains());
    expect(await answers()).toBe('answered');
    const table = await first.table();
    for (const chain of ['lb4-100', 'aff4-1-60']) await first.nft(`list chain inet TABLE ${chain}`);
    await first[Symbol.asyncDispose]();
    await using second = await Healing.start(site.node, withChains());
    expect((await second.line('applied', 0)).fields).toMatchObject({ writes: 0 });
    expect(await second.table()).toBe(table);
    const intact = await second.dump();
    await second.heal('add rule inet TABLE lb4-100 drop');
    expect(await second.table()).toBe(table);
    await second.heal('flush chain inet TABLE aff4-1-60');
    expect(await second.table()).not.toBe(table);
    expect(await second.dump()).toBe(intact);
    expect(await answers()).toBe('answered');
    await second.cleanup();
  });
});

describe('two families in one table', () => {
  test('each notices damage of the rules, both are healed, and what one does is no drift to the other', async () => {
    await using healing = await Healing.start(site.node, cluster(), ipFamilies);
    const from = healing.lines;
    await healing.heal('flush chain inet TABLE services');
    for (const family of ipFamilies) {
      await healing.line('drift healed', from, family);
      expect(await answers(family)).toBe('answered');
    }
    await setTimeout(500);
    const told = healing.linesFrom(from).filter(({ message }) => message.startsWith('drift:'));
    expect(told.map(({ fields }) => fields['ipFamily']).sort()).toEqual(['IPv4', 'IPv6']);
    await healing.cleanup();
    expect(await healing.nft('list ruleset')).toBe('');
  });

  test.each(ipFamilies)('a frontend of %s that is deleted concerns that family alone', async (family) => {
    await using healing = await Healing.start(site.node, cluster(), ipFamilies);
    const intact = await healing.dump(family);
    const from = healing.lines;
    const map = `frontends${family === 'IPv4' ? '4' : '6'}`;
    await healing.nft(`delete element inet TABLE ${map} { ${frontend[family]} }`);
    await healing.line('drift healed', from, family);
    expect(await healing.dump(family)).toBe(intact);
    expect(await answers(family)).toBe('answered');
    await setTimeout(300);
    const told = healing.linesFrom(from).filter(({ message }) => message.startsWith('drift:'));
    expect(told.map(({ fields }) => [fields['ipFamily'], fields['changes']])).toEqual([
      [family, [`element ${frontend[family]} deleted from ${map}`]],
    ]);
    await healing.cleanup();
  });
});

describe('a table', () => {
  test('says whose it is and which version', async () => {
    await using healing = await Healing.start(site.node, cluster());
    expect(await healing.nft('list table inet TABLE')).toMatch(
      /comment "owner: switchyard node agent; rules: 0x[0-9a-f]+; changes by others are undone"/,
    );
    await healing.cleanup();
  });
});
