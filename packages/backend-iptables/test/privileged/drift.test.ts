import { endpointChain, serviceChains } from '@switchyard/netfilter/iptables';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { type ClusterEvent, ipFamilies, type ServicePortKey } from '@switchyard/core';
import { node, replaceAll, service, slice } from '@switchyard/core/testing';
import {
  createLab,
  createProber,
  type Lab,
  type LabNode,
  type LabPod,
  type Prober,
  startEchoServer,
} from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Healing } from './healing.ts';
import { signal, variant } from './support.ts';

const vip = { IPv4: '10.96.0.10', IPv6: 'fd00:10:96::10' };
const isNft = variant === 'nft';
/** Milliseconds, for a busy machine; docs/figures.md has the measurements. Legacy tables are read, which takes their program. */
const bound = isNft ? 5000 : 15_000;

const key = (name: string): ServicePortKey => `shop/${name}:/TCP` as ServicePortKey;
const cart = serviceChains(key('cart'), 'TCP').SVC;
const unrelated = serviceChains(key('s1'), 'TCP').SVC;
const unrelatedEndpoint = endpointChain(key('s1'), 'TCP', '10.244.9.1:8080');

let lab: Lab;
let here: LabNode;
let near: LabPod;
let client: Prober;

beforeAll(async () => {
  lab = await createLab({ name: `dri${variant}`.slice(0, 8), nodes: 1, ipFamilies }, signal);
  [here] = lab.nodes as [LabNode];
  near = await lab.addPod(here, 'near');
  startEchoServer(near, { pod: 'near', tcp: [8080], udp: [8080] });
  client = await createProber(near, signal);
});
afterAll(() => lab[Symbol.asyncDispose]());

/** One Service of both families behind the pod, and some without traffic. */
function cluster(more = 20): readonly ClusterEvent[] {
  const { IPv4, IPv6 } = near.addresses;
  const others = Array.from({ length: more }, (_, index) => `shop/s${index}`);
  return replaceAll({
    services: [
      service('shop/cart', { clusterIps: [vip.IPv4, vip.IPv6] }),
      ...others.map((name, index) => service(name, { clusterIps: [`10.97.0.${index}`] })),
    ],
    slices: [
      slice('shop/cart', { endpoints: [{ ip: IPv4!, node: 'n1' }] }),
      slice('shop/cart', { name: 'cart-6', ipFamily: 'IPv6', endpoints: [{ ip: IPv6!, node: 'n1' }] }),
      ...others.map((name) => slice(name, { endpoints: ['10.244.9.1', '10.244.9.2', '10.244.9.3'] })),
    ],
    nodes: [node('n1')],
  });
}

async function answers(family: 'IPv4' | 'IPv6' = 'IPv4'): Promise<string> {
  const ask = () => client.probe({ protocol: 'tcp', address: vip[family], port: 80, timeout: 500 });
  let { status } = await ask();
  for (let round = 0; round < 20 && status !== 'answered'; round++) {
    await once(AbortSignal.timeout(50), 'abort'); // the echo server may still be starting
    ({ status } = await ask());
  }
  return status;
}

/** As the kernel names it. */
function programOf(damage: string): string {
  if (damage.startsWith('nft')) return 'nft';
  return damage.startsWith('empty') ? 'iptables-nft-re' : 'iptables-nft';
}

/** The damage, its report from nft's notices, and its report from a look at legacy tables. */
type Damage = readonly [what: string, script: string, told: RegExp, found: RegExp];

const changed = (chain: string, table = 'nat'): RegExp =>
  new RegExp(`^chain ${chain} changed \\(table ip ${table}\\)$`);
const missing = /^chain \S+ missing \(table ip \w+\)$/;

const damages: readonly Damage[] = [
  ['a rule removed', `-t nat -D ${unrelated} 1`, new RegExp(`^rule of chain ${unrelated} deleted`), changed(unrelated)],
  ['a rule altered', `-t nat -R ${unrelated} 1 -j ACCEPT`, new RegExp(`chain ${unrelated}`), changed(unrelated)],
  [
    'a rule in the middle',
    `-t nat -I ${unrelated} 2 -j ACCEPT`,
    new RegExp(`^rule added to chain ${unrelated}`),
    changed(unrelated),
  ],
  ['a chain flushed', `-t nat -F ${cart}`, new RegExp(`^rule of chain ${cart} deleted`), changed(cart)],
  ['an entry removed', '-t nat -D KUBE-SERVICES 1', /^rule of chain KUBE-SERVICES deleted/, changed('KUBE-SERVICES')],
  [
    'an entry that takes all traffic',
    `-t nat -I KUBE-SERVICES 1 -d ${vip.IPv4} -j ACCEPT`,
    /^rule added to chain KUBE-SERVICES \(table ip nat\)$/,
    changed('KUBE-SERVICES'),
  ],
  ['a jump removed', '-t nat -D PREROUTING 1', /^rule of chain PREROUTING deleted/, changed('PREROUTING')],
  ['the masquerading flushed', '-t nat -F KUBE-POSTROUTING', /KUBE-POSTROUTING deleted/, changed('KUBE-POSTROUTING')],
  [
    'a chain of the filter table flushed',
    '-t filter -F KUBE-FORWARD',
    /KUBE-FORWARD deleted/,
    changed('KUBE-FORWARD', 'filter'),
  ],
  [
    'a table flushed',
    '-t nat -F',
    /^rule of chain \S+ deleted \(table ip nat\)$/,
    /^chain \S+ changed \(table ip nat\)$/,
  ],
  ['a table emptied, with its chains', 'empty nat', /^table ip nat deleted$/, missing],
  ['all tables emptied, as by a firewall that starts', 'empty nat filter mangle', /^table ip \w+ deleted$/, missing],
  ...(isNft
    ? ([
        ['a table deleted', 'nft delete table ip nat', /^table ip nat deleted$/, missing],
        ['the filter table deleted', 'nft delete table ip filter', /^table ip filter deleted$/, missing],
        ['flush ruleset', 'nft flush ruleset', /^table ip \w+ deleted$/, missing],
      ] satisfies readonly Damage[])
    : []),
];

describe('damage', () => {
  let healing: Healing;
  let intact: string;

  beforeAll(async () => {
    healing = await Healing.start({ lab, host: here, cluster: cluster() });
    intact = await healing.dump();
    expect(await answers()).toBe('answered');
  });
  afterAll(() => healing.cleanup());

  test.each(damages)('%s is noticed, told and healed', async (_, damage, told, found) => {
    const from = healing.lines;
    const duration = await healing.heal(damage);
    const [line] = healing.driftFrom(from);
    const changes = line?.fields['changes'] as readonly string[];
    expect(changes[0]).toMatch(isNft ? told : found);
    if (isNft) expect(line?.fields).toMatchObject({ process: { name: programOf(damage) } });
    expect(await answers()).toBe('answered');
    expect(await healing.dump()).toBe(intact);
    expect(duration).toBeLessThan(bound);
  });

  test('only the damaged chain is read again and written', async () => {
    await healing.calm();
    healing.restores.length = 0;
    await healing.heal(`-t nat -D ${unrelated} 1`);
    expect(healing.restores).toHaveLength(1);
    const lines = healing.restores[0]?.trimEnd().split('\n') ?? [];
    expect(lines.filter((line) => line.startsWith(':'))).toEqual([`:${unrelated} - [0:0]`]);
    expect(lines.filter((line) => line.startsWith('-')).every((line) => line.startsWith(`-A ${unrelated} `))).toBe(
      true,
    );
    expect(lines.length).toBeLessThan(8);
  });

  test('a foreign rule in a shared chain is deleted, and nothing else is written', async () => {
    await healing.calm();
    healing.restores.length = 0;
    await healing.heal('-t nat -I KUBE-SERVICES 1 -d 10.1.2.3 -j ACCEPT');
    expect(healing.restores).toEqual(['*nat\n-D KUBE-SERVICES -d 10.1.2.3/32 -j ACCEPT\nCOMMIT\n']);
  });

  test('one heal is one report', async () => {
    await healing.calm();
    const from = healing.lines;
    await healing.heal(`-t nat -F ${cart}`);
    await setTimeout(1000);
    expect(healing.driftFrom(from)).toHaveLength(1);
  });

  test('changes of the cluster are no drift', async () => {
    const from = healing.lines;
    healing.push(cluster(40));
    await healing.line('applied', from);
    await setTimeout(1500);
    healing.push(cluster());
    await healing.line('applied', from + 1);
    await setTimeout(1500);
    expect(healing.driftFrom(from)).toEqual([]);
  });

  test('what others do to chains of their own, and beside our jumps, is left alone and not told', async () => {
    const from = healing.lines;
    const theirs = [
      '-t nat -N CNI-X',
      '-t nat -A CNI-X -d 10.1.2.3 -j ACCEPT',
      '-t nat -I PREROUTING 1 -j CNI-X',
      '-A FORWARD -d 10.1.2.3 -j DROP',
    ];
    await healing.others(theirs.join('\n'));
    const listing = (): Promise<string> => healing.others('-t nat -S CNI-X\n-t nat -S PREROUTING\n-S FORWARD');
    const before = await listing();
    await setTimeout(1500);
    expect(healing.driftFrom(from)).toEqual([]);
    await healing.heal(`-t nat -F ${cart}`);
    await healing.heal('-t nat -D PREROUTING 2');
    const after = await listing();
    expect(after.split('\n').sort()).toEqual(before.split('\n').sort());
    await healing.others(
      '-t nat -D PREROUTING -j CNI-X\n-t nat -F CNI-X\n-t nat -X CNI-X\n-D FORWARD -d 10.1.2.3 -j DROP',
    );
  });

  test('traffic of other Services does not notice', async () => {
    const done = new AbortController();
    const failed: string[] = [];
    let count = 0;
    const connect = async (protocol: 'tcp'): Promise<void> => {
      while (!done.signal.aborted) {
        const { status } = await client.probe({ protocol, address: vip.IPv4, port: 80, timeout: 2000 });
        count++;
        if (status !== 'answered') failed.push(status);
      }
    };
    const connecting = Promise.all([connect('tcp'), connect('tcp')]);
    try {
      for (const damage of [`-D ${unrelated} 1`, `-F ${unrelatedEndpoint}`, `-I ${unrelated} 2 -j ACCEPT`]) {
        await healing.heal(`-t nat ${damage}`);
      }
    } finally {
      done.abort();
      await connecting;
    }
    expect(failed).toEqual([]);
    expect(count).toBeGreaterThan(100);
  });
});

describe('two families', () => {
  test('damage of one concerns that one alone', async () => {
    await using healing = await Healing.start({ lab, host: here, cluster: cluster(), families: ipFamilies });
    const intact = await healing.dump('IPv6');
    expect(await answers('IPv6')).toBe('answered');
    const from = healing.lines;
    await healing.heal(`-t nat -F ${cart}`, 'IPv6');
    expect(await answers('IPv6')).toBe('answered');
    expect(await healing.dump('IPv6')).toBe(intact);
    await setTimeout(500);
    expect(healing.driftFrom(from).map(({ fields }) => fields['ipFamily'])).toEqual(['IPv6']);
    await healing.cleanup();
  });
});
