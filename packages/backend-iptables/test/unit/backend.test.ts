import { type ForwardingTable } from '@switchyard/core';
import { here, situation, there } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import { FakeIptables } from '../../src/testing/index.ts';
import { Driven } from './support.ts';

const ports = [{ port: 80, nodePort: 30080 }];
const cart = (...endpoints: readonly ReturnType<typeof here>[]): ForwardingTable => situation({ cart: { endpoints } });
const lb = (...endpoints: readonly ReturnType<typeof here>[]): ForwardingTable =>
  situation({
    cart: { ports, external: 'Local', loadBalancerIps: ['198.51.100.7'], externalIps: ['198.51.100.8'], endpoints },
  });

describe.each(['nft', 'legacy'] as const)('over iptables of variant %s', (variant) => {
  describe('the cost of a change, in writes', () => {
    const two = [there('10.244.2.1'), there('10.244.2.2')];
    const [first] = two;
    test.each<[string, ForwardingTable, ForwardingTable, number]>([
      ['one endpoint added: its chain, and the one that chooses', cart(...two), cart(...two, there('10.244.2.3')), 2],
      ['one of two endpoints removed', cart(...two), cart(first!), 2],
      ['one endpoint replaced', cart(...two), cart(first!, there('10.244.2.9')), 3],
      ['the first endpoint: two chains, the entry, and no reject any more', cart(), cart(first!), 4],
      ['the last endpoint gone', cart(first!), cart(), 4],
      ['a remote endpoint added under four frontends', lb(...two), lb(...two, there('10.244.2.3')), 2],
      ['a Service with one endpoint added', situation({}), cart(first!), 3],
      ['a Service with one endpoint removed', cart(first!), situation({}), 3],
    ])('%s', async (_, before, after, writes) => {
      const driven = await Driven.open({ variant });
      await driven.full(before);
      const restores = driven.iptables.restores.length;
      expect(await driven.next(after)).toEqual({ status: 'applied', writes });
      expect(driven.iptables.restores.length - restores).toBe(1);
      expect(await driven.full(after)).toEqual({ status: 'applied', writes: 0 });
    });
  });

  test('a process with no memory finds everything as it should be', async () => {
    const table = lb(here('10.244.1.1'), there('10.244.2.2'));
    const driven = await Driven.open({ variant });
    await driven.full(table);
    const again = await Driven.open({ variant, iptables: driven.iptables });
    expect(await again.full(table)).toEqual({ status: 'applied', writes: 0 });
    expect(again.iptables.restores).toHaveLength(1);
  });

  test('the firewall of the kubelet keeps what is in it when NodePorts come to answer on loopback', async () => {
    const iptables = new FakeIptables();
    const ofKubelet = '-A KUBE-FIREWALL -m mark --mark 0x8000/0x8000 -j DROP';
    iptables.put('IPv4', variant, `*filter\n:KUBE-FIREWALL - [0:0]\n${ofKubelet}\nCOMMIT\n`);
    const driven = await Driven.open({ variant, iptables });
    await driven.full(situation({ cart: { ports } }));
    await driven.next(situation({ cart: { ports } }, { localhostNodePorts: true }));
    expect(driven.save()).toContain(`${ofKubelet}\n-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 `);
    await driven.next(situation({ cart: { ports } }));
    expect(driven.save()).toContain(ofKubelet);
    expect(
      driven.backend.driver.state?.list('filter', 'KUBE-FIREWALL'),
      'is nobody to look at any more',
    ).toBeUndefined();
  });
});
