import { serviceChains } from '@switchyard/netfilter/iptables';
import type { ForwardingTable, ServicePortKey } from '@switchyard/core';
import { situation, there } from '@switchyard/core/testing';
import type { CommandOptions } from '@switchyard/host';
import { describe, expect, test } from 'vitest';
import { FakeIptables } from '../../src/testing/index.ts';
import { Driven, signal } from './support.ts';

const chainOf = (name: string): string => serviceChains(`shop/${name}:/TCP` as ServicePortKey, 'TCP').SVC;
const cart = chainOf('cart');

/** Some Services with two endpoints each; so many that reading one chain is cheaper than reading all. */
function shop(endpoints: readonly string[] = ['10.244.2.1', '10.244.2.2'], others = 40): ForwardingTable {
  const names = Array.from({ length: others }, (_, index) => `s${index}`);
  const services = names.map((name, index) => [
    name,
    { clusterIps: [`10.97.0.${index}`], endpoints: [there('10.244.3.1'), there('10.244.3.2')] },
  ]);
  return situation({ cart: { endpoints: endpoints.map(there) }, ...Object.fromEntries(services) });
}

/** A backend that wrote a table, and what is read of the kernel from then on. */
async function written(variant: 'nft' | 'legacy', table = shop()) {
  const iptables = new FakeIptables();
  const driven = await Driven.open({ variant, iptables });
  await driven.full(table);
  const reads: string[] = [];
  const run = iptables.run.bind(iptables);
  iptables.run = (file: string, args: readonly string[], options: CommandOptions) => {
    const at = args.indexOf('-S');
    if (file.endsWith('-save')) reads.push(`all of ${args[args.indexOf('-t') + 1]}`);
    else if (at >= 0) reads.push(args[at + 1] ?? '');
    return run(file, args, options);
  };
  const { driver } = driven.backend;
  const repair = (of = table) => driven.backend.apply({ table: of, scope: { kind: 'full', after: 'drift' } }, signal);
  const damage = (lines: string): void => iptables.put('IPv4', variant, `*nat\n${lines}\nCOMMIT\n`);
  return { driven, driver, reads, repair, damage, intact: driven.save() };
}

describe.each(['nft', 'legacy'] as const)('over iptables of variant %s', (variant) => {
  test('only the chain that is suspect is read, and written when it is not as it was left', async () => {
    const { driven, driver, reads, repair, damage, intact } = await written(variant);
    damage(`-A ${cart} -j ACCEPT`);
    driver.noteChain({ table: 'nat', name: cart });
    expect(await repair()).toMatchObject({ status: 'applied', writes: 1 });
    expect(reads).toEqual([cart]);
    expect(driven.save()).toBe(intact);
  });

  test('a suspect that is as it was left costs nothing more', async () => {
    const { driven, driver, reads, repair } = await written(variant);
    const restores = driven.iptables.restores.length;
    driver.noteChain({ table: 'nat', name: cart });
    expect(await repair()).toEqual({ status: 'applied', writes: 0 });
    expect([reads, driven.iptables.restores.length]).toEqual([[cart], restores]);
  });

  test('what changed in the cluster meanwhile is written with it', async () => {
    const { driven, driver, repair, damage } = await written(variant);
    const next = shop(['10.244.2.1']);
    damage(`-F ${chainOf('s1')}`);
    driver.noteChain({ table: 'nat', name: chainOf('s1') });
    await repair(next);
    const fresh = await Driven.open({ variant });
    await fresh.full(next);
    expect(driven.save().split('\n').sort()).toEqual(fresh.save().split('\n').sort());
  });

  test.each<[string, string, string]>([
    [
      'a missing chain',
      `-F ${cart}\n-D KUBE-SERVICES -d 10.96.0.10/32 -p tcp -m comment --comment "shop/cart cluster IP" -m tcp --dport 80 -j ${cart}\n-X ${cart}`,
      cart,
    ],
    ['a foreign rule in a shared chain', '-I KUBE-SERVICES 1 -d 10.96.0.10/32 -j ACCEPT', 'KUBE-SERVICES'],
    [
      'a foreign chain with an own name',
      `:KUBE-SVC-ABCDEFGHIJKLMN23 - [0:0]\n-A KUBE-SVC-ABCDEFGHIJKLMN23 -j ACCEPT`,
      'KUBE-SVC-ABCDEFGHIJKLMN23',
    ],
  ])('%s does not stay', async (_, lines, suspect) => {
    const { driven, driver, repair, damage, intact } = await written(variant);
    damage(lines);
    for (const name of new Set([suspect, 'KUBE-SERVICES'])) driver.noteChain({ table: 'nat', name });
    expect(await repair()).toMatchObject({ status: 'applied' });
    expect(driven.save().split('\n').sort()).toEqual(intact.split('\n').sort());
  });

  test('everything is read once when anything may have been touched', async () => {
    const { driven, driver, reads, repair, damage, intact } = await written(variant);
    damage(`-F ${cart}`);
    driver.noteAll();
    await repair();
    expect(reads).toEqual(['all of nat', 'all of filter', 'all of mangle']);
    await repair();
    expect(reads).toHaveLength(3);
    expect(driven.save()).toBe(intact);
  });

  test('everything is read once where that is cheaper than to read many chains one by one', async () => {
    const { driver, reads, repair } = await written(variant);
    for (let index = 0; index < 40; index++) driver.noteChain({ table: 'nat', name: chainOf(`s${index}`) });
    await repair();
    expect(reads).toEqual(['all of nat', 'all of filter', 'all of mangle']);
  });

  test('of a table that was deleted only that is read, where others hold more', async () => {
    const { driven, driver, reads, repair, intact } = await written(variant, shop(undefined, 200));
    expect(driven.iptables.tables.delete(`IPv4 ${variant} filter`)).toBe(true);
    driver.noteTable('filter');
    await repair();
    if (variant === 'nft') expect(reads).not.toContain('all of nat');
    expect(driven.save().split('\n').sort()).toEqual(intact.split('\n').sort());
  });

  test('what becomes suspect while all is read is read again by the next repair', async () => {
    const { driven, driver, reads, repair } = await written(variant);
    driver.noteAll();
    const healing = repair();
    driver.noteChain({ table: 'nat', name: cart });
    await healing;
    reads.length = 0;
    await repair();
    expect(reads).toEqual([cart]);
    const full = driven.full(shop());
    driver.noteAll();
    await full;
    expect(driver.canHeal).toBe(false);
  });

  test('a table that is deleted while others are still read does not stay away', async () => {
    const { driven, driver, repair, intact } = await written(variant);
    const { iptables } = driven;
    const run = iptables.run.bind(iptables);
    let isDeleted = false;
    iptables.run = async (file: string, args: readonly string[], options: CommandOptions) => {
      const result = await run(file, args, options);
      if (isDeleted || !file.endsWith('-save') || !args.includes('filter')) return result;
      isDeleted = iptables.tables.delete(`IPv4 ${variant} nat`);
      driver.noteTable('nat');
      return result;
    };
    await driven.full(shop());
    expect(isDeleted).toBe(true);
    await repair();
    expect(driven.save().split('\n').sort()).toEqual(intact.split('\n').sort());
  });
});
