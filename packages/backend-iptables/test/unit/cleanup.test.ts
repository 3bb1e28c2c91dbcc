import { situation, there } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import { Driven, signal } from './support.ts';

const table = situation({ cart: { endpoints: [there('10.244.2.1')] } });

describe.each(['nft', 'legacy'] as const)('a cleanup of variant %s', (variant) => {
  test("leaves a kube-proxy's chains alone: ours are where the birthmark is", async () => {
    const driven = await Driven.open({ variant });
    driven.iptables.put('IPv4', variant, '*nat\n:KUBE-SERVICES - [0:0]\n-A PREROUTING -j KUBE-SERVICES\nCOMMIT\n');
    const before = driven.save();
    expect(await driven.backend.cleanup(signal)).toEqual([]);
    expect(driven.save()).toBe(before);
    await driven.full(table);
    expect(await driven.backend.cleanup(signal)).toHaveLength(3);
    expect(driven.save()).toBe('');
  });

  test('leaves nothing of an apply of which the kernel took only a part', async () => {
    const driven = await Driven.open({ variant });
    driven.iptables.refusing = /-A KUBE-MARK-MASQ/;
    expect(await driven.full(table)).toMatchObject({ status: 'failed' });
    driven.iptables.refusing = undefined;
    expect(driven.save()).toContain('KUBE-FORWARD');
    await driven.backend.cleanup(signal);
    expect(driven.save()).toBe('');
  });
});
