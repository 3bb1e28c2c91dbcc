import { type Clock, type ForwardingTable, millis, type ServicePortKey } from '@switchyard/core';
import { MemoryLogger, situation, there } from '@switchyard/core/testing';
import { beforeEach, describe, expect, test } from 'vitest';
import { Driven, signal } from './support.ts';

/** Services `s0` and so on, each with a cluster IP and two endpoints; those in `dry` with none. */
function services(count: number, dry: readonly number[] = [], third = 1): ForwardingTable {
  return situation(
    Object.fromEntries(
      Array.from({ length: count }, (_, index) => {
        const endpoints = dry.includes(index)
          ? []
          : [there(`10.244.${third}.${2 * index}`), there(`10.244.${third}.${2 * index + 1}`)];
        return [`s${index}`, { clusterIps: [`10.96.0.${index + 10}`], endpoints }];
      }),
    ),
  );
}

const key = (index: number): ServicePortKey => `shop/s${index}:/TCP` as ServicePortKey;

describe.each(['nft', 'legacy'] as const)('over iptables of variant %s', (variant) => {
  let driven: Driven;
  beforeEach(async () => {
    driven = await Driven.open({ variant });
  });

  describe('a Service that the kernel refuses', () => {
    test('is named, others of the first load are written', async () => {
      driven.iptables.refusing = /-d 10\.96\.0\.13\/32/;
      const outcome = await driven.full(services(6));
      expect(outcome).toMatchObject({ status: 'partial', failed: new Map([[key(3), expect.any(Error)]]) });
      expect(driven.save()).toContain('10.96.0.12/32');
      expect(driven.save()).not.toContain('10.96.0.13/32');
    });

    test('keeps what it had in a change, others are changed', async () => {
      await driven.full(services(6));
      driven.iptables.refusing = /10\.244\.2\.6\b/;
      const outcome = await driven.next(services(6, [], 2));
      expect(outcome).toMatchObject({ status: 'partial', failed: new Map([[key(3), expect.any(Error)]]) });
      expect(driven.save()).toContain('10.244.1.6:8080');
      expect(driven.save()).toContain('10.244.2.4:8080');
      expect(driven.save()).not.toContain('10.244.1.4:8080');
    });

    test('is written as soon as the kernel takes it', async () => {
      driven.iptables.refusing = /-d 10\.96\.0\.13\/32/;
      await driven.full(services(6));
      driven.iptables.refusing = undefined;
      const retried = services(6);
      const failed = retried.services.get(key(3));
      const delta = { upserted: failed === undefined ? [] : [failed], removed: [], settingsChanged: false };
      const scope = { kind: 'delta', delta } as const;
      expect(await driven.backend.apply({ table: retried, scope }, signal)).toMatchObject({ status: 'applied' });
      expect(await driven.full(retried)).toEqual({ status: 'applied', writes: 0 });
    });

    describe('loses an address', () => {
      const two = (hasMoved: boolean, third = 1): ForwardingTable =>
        situation({
          a: {
            clusterIps: ['10.96.0.10'],
            externalIps: hasMoved ? [] : ['203.0.113.9'],
            endpoints: [there(`10.244.${third}.1`)],
          },
          b: { clusterIps: ['10.96.0.11'], externalIps: hasMoved ? ['203.0.113.9'] : [], endpoints: [] },
        });
      const entry = /-A KUBE-SERVICES -d 203\.0\.113\.9\/32 .* -j KUBE-EXT/;

      test('which another one refuses connections on: it goes, what else it had stays', async () => {
        await driven.full(two(false));
        expect(driven.save()).toMatch(entry);
        driven.iptables.refusing = /10\.244\.2\.1\b/;
        expect(await driven.next(two(true, 2))).toMatchObject({ status: 'partial' });
        expect(driven.save()).not.toMatch(entry);
        expect(driven.save()).toMatch(/-A KUBE-\S+ -d 203\.0\.113\.9\/32 .* -j REJECT/);
        expect(driven.save()).toMatch(/-A KUBE-SERVICES -d 10\.96\.0\.10\/32 .* -j KUBE-SVC/);
        expect(driven.save()).toContain('10.244.1.1:8080');
        driven.iptables.refusing = undefined;
        await driven.full(two(true, 2));
        const fresh = await Driven.open({ variant });
        await fresh.full(two(true, 2));
        expect(await driven.dump()).toBe(await fresh.dump());
      });

      test('without an agent: it is removed with the first apply, its other rules stay', async () => {
        await driven.full(two(false));
        driven.iptables.refusing = /10\.244\.2\.1\b/;
        const restarted = await Driven.open({ variant, iptables: driven.iptables });
        expect(await restarted.full(two(true, 2))).toMatchObject({ status: 'partial' });
        expect(driven.save()).not.toMatch(entry);
        expect(driven.save()).toMatch(/-A KUBE-SERVICES -d 10\.96\.0\.10\/32 .* -j KUBE-SVC/);
      });
    });

    test('leaves nothing behind when it is removed instead', async () => {
      await driven.full(services(6));
      driven.iptables.refusing = /10\.244\.2\.6\b/;
      await driven.next(services(6, [3], 2));
      driven.iptables.refusing = undefined;
      await driven.next(services(3));
      const fresh = await Driven.open({ variant });
      await fresh.full(services(3));
      expect(await driven.dump()).toBe(await fresh.dump());
    });
  });

  describe('knowledge that was wrong', () => {
    const damages: readonly (readonly [string, RegExp])[] = [
      ['entries that are to go are gone', /^$/],
      ['chains of Services are gone', /^KUBE-SVC/],
      ['chains of endpoints are gone', /^KUBE-SEP/],
      ['shared chains are gone', /^KUBE-SERVICES/],
    ];
    test.each(damages)('%s: the change is made nevertheless', async (_, doomed) => {
      await driven.full(services(6));
      const chains = [...driven.save().matchAll(/^:(KUBE-\S+)/gm)].map(([, name]) => name ?? '');
      const flushes = [...new Set(chains)].filter((name) => !/CANARY|FIREWALL|FORWARD|EXTERNAL/.test(name));
      const nat = (lines: readonly string[]): void => {
        driven.iptables.put('IPv4', variant, `*nat\n${lines.join('\n')}\nCOMMIT\n`);
      };
      nat(['-F PREROUTING', '-F OUTPUT', ...flushes.map((name) => `-F ${name}`)]);
      const gone = flushes.filter((name) => doomed.test(name));
      if (gone.length > 0) nat(gone.map((name) => `-X ${name}`));
      expect(await driven.next(services(5, [2], 2))).toMatchObject({ status: 'applied' });
      await driven.full(services(5, [2], 2));
      const fresh = await Driven.open({ variant });
      await fresh.full(services(5, [2], 2));
      expect(await driven.dump()).toBe(await fresh.dump());
    });
  });

  describe('others in the way', () => {
    test('are waited for a few times', async () => {
      await driven.full(services(2));
      driven.iptables.contended = 2;
      expect(await driven.next(services(3))).toMatchObject({ status: 'applied' });
    });

    test('for long make the apply fail, and the next one reads everything', async () => {
      await driven.full(services(2));
      driven.iptables.contended = 20;
      expect(await driven.next(services(3))).toMatchObject({ status: 'failed' });
      driven.iptables.contended = 0;
      expect(await driven.next(services(3))).toMatchObject({ status: 'applied' });
      expect(await driven.full(services(3))).toEqual({ status: 'applied', writes: 0 });
    });
  });

  test('chains of kube-proxy that a foreign rule leads to stay, and fail nothing', async () => {
    const stale = ':KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]\n:KUBE-SVC-BBBBBBBBBBBBBBBB - [0:0]\n';
    driven.iptables.put('IPv4', variant, `*nat\n${stale}:MINE - [0:0]\n-A MINE -j KUBE-SVC-AAAAAAAAAAAAAAAA\nCOMMIT\n`);
    expect(await driven.full(services(2))).toMatchObject({ status: 'applied' });
    expect(driven.save()).toContain('-A MINE -j KUBE-SVC-AAAAAAAAAAAAAAAA');
    expect(driven.save()).not.toContain('BBBBBBBBBBBBBBBB');
  });

  test('a foreign rule that iptables does not delete stays alone, is named, and told of once in a while', async () => {
    const logger = new MemoryLogger();
    let now = 0;
    const clock: Clock = { now: () => millis(now), monotonic: () => millis(now), sleep: () => Promise.resolve() };
    driven = await Driven.open({ variant, logger, clock });
    await driven.full(services(2));
    const foreign = ['8', '9', '10'].map((last) => `-A KUBE-SERVICES -s 10.0.0.${last}/32 -j RETURN\n`);
    driven.iptables.put('IPv4', variant, `*nat\n${foreign.join('')}COMMIT\n`);
    driven.iptables.refusing = /-D KUBE-SERVICES -s 10\.0\.0\.9\//;
    const reason = expect.stringMatching(
      /^cannot remove rule "-s 10\.0\.0\.9\/32 -j RETURN" from chain KUBE-SERVICES of table nat: /,
    );
    const outcome = await driven.full(services(3));
    expect(outcome).toMatchObject({ status: 'applied', unremoved: expect.objectContaining({ message: reason }) });
    expect(driven.save().match(/10\.0\.0\.\d+\/32 -j RETURN/g)).toEqual(['10.0.0.9/32 -j RETURN']);
    expect(driven.save()).toContain('10.96.0.12/32');
    await driven.full(services(3));
    const told = () => logger.lines.filter(({ level }) => level === 'warn').map(({ fields }) => fields);
    expect(told()).toEqual([{ ipFamily: 'IPv4', refused: 1, reason }]);
    now = 600_000;
    await driven.full(services(3));
    expect(told()).toHaveLength(2);
    driven.iptables.refusing = undefined;
    expect(await driven.full(services(3))).toEqual({ status: 'applied', writes: 1 });
    expect(driven.save()).not.toContain('10.0.0.9/32 -j RETURN');
  });

  describe('a chain of a Service that a foreign rule leads to', () => {
    const mine = (rule: string): void => {
      driven.iptables.put('IPv4', variant, `*nat\n:MINE - [0:0]\n${rule}COMMIT\n`);
    };
    const chainTo = (address: string): string =>
      new RegExp(`^-A (KUBE-SEP-\\S+) .*${address.replaceAll('.', '\\.')}:8080$`, 'm').exec(driven.save())?.[1] ?? '';

    test('stays when the Service goes, which is forwarded no more; it goes when nothing leads to it', async () => {
      await driven.full(services(6));
      const chain = /-d 10\.96\.0\.15\/32.* -j (KUBE-SVC-\S+)$/m.exec(driven.save())?.[1] ?? '';
      mine(`-A MINE -j ${chain}\n`);
      expect(await driven.next(services(5))).toMatchObject({ status: 'applied' });
      expect(driven.save()).not.toContain('-A KUBE-SERVICES -d 10.96.0.15/32');
      expect(driven.save()).toContain(`:${chain} `);
      mine('');
      expect(await driven.next(services(4))).toMatchObject({ status: 'applied' });
      expect(driven.save()).not.toContain(chain);
    });

    test('stays when its endpoint is deleted, which gets no traffic any more', async () => {
      await driven.full(services(6));
      const chain = chainTo('10.244.1.6');
      mine(`-A MINE -j ${chain}\n`);
      expect(await driven.next(services(6, [], 2))).toMatchObject({ status: 'applied' });
      expect(driven.save().match(new RegExp(`-j ${chain}$`, 'gm'))).toHaveLength(1);
      expect(chainTo('10.244.2.6')).toMatch(/^KUBE-SEP-/);
    });
  });

  test('of ten endpoints one is replaced: at most 4 kB are written', async () => {
    const ten = (last: number): ForwardingTable =>
      situation({
        'recommendation-service': {
          ports: [{ name: 'http', port: 80 }],
          endpoints: [1, 2, 3, 4, 5, 6, 7, 8, 9, last].map((at) => there(`10.244.100.${at}`)),
        },
      });
    await driven.full(ten(10));
    await driven.next(ten(11));
    expect(driven.iptables.restores.at(-1)?.text.length).toBeLessThanOrEqual(4000);
  });
});
