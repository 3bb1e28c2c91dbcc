import type { CommandRunner } from '@switchyard/host';
import type { IptablesVariant } from '@switchyard/netfilter/iptables';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { detectVariant } from '../../src/kernel/client/detect-variant.ts';
import { createNamespace, signal, type TestNamespace, variant } from './support.ts';

let namespace: TestNamespace;
const other: IptablesVariant = variant === 'nft' ? 'legacy' : 'nft';

beforeEach(async () => {
  namespace = await createNamespace();
});
afterEach(() => namespace[Symbol.asyncDispose]());

const detected = (runner: CommandRunner = namespace.runner): ReturnType<typeof detectVariant> =>
  detectVariant(runner, ['IPv4', 'IPv6'], signal);

const add = (of: IptablesVariant, content: string, family = 'iptables'): Promise<string> =>
  namespace.run(`${family}-${of}-restore --noflush`, content);

const rules = (count: number): string => `*filter\n${'-A INPUT -j ACCEPT\n'.repeat(count)}COMMIT\n`;

test('nothing is found in an empty namespace, and nothing is made', async () => {
  expect(await detected()).toEqual({ variant: 'nft', reason: 'no rules in iptables-legacy' });
  expect(await namespace.run('cat /proc/net/ip_tables_names /proc/net/ip6_tables_names')).toBe('');
  expect(await namespace.run('nft list tables')).toBe('');
});

describe('the variant is that', () => {
  test.each(['KUBE-IPTABLES-HINT', 'KUBE-KUBELET-CANARY'])('where the kubelet made %s', async (hint) => {
    await add(other, rules(5));
    await add(variant, `*mangle\n:${hint} - [0:0]\nCOMMIT\n`);
    expect(await detected()).toEqual({ variant, reason: `chain ${hint} is in iptables-${variant}` });
  });

  test('where the kubelet made a hint for IPv6 only', async () => {
    await add(other, rules(5));
    await add(variant, '*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n', 'ip6tables');
    expect(await detected()).toEqual({ variant, reason: `chain KUBE-IPTABLES-HINT is in ip6tables-${variant}` });
  });

  test('where more rules are', async () => {
    await add(variant, rules(3));
    await add(variant, rules(2), 'ip6tables');
    await add(other, rules(4));
    const found = await detected();
    expect(found.variant).toBe(variant);
    if (variant === 'legacy') expect(found.reason).toBe('rules in iptables-legacy: 5, in iptables-nft: 4');
  });
});

test('nft is taken where both have as many', async () => {
  await add('nft', rules(3));
  await add('legacy', rules(3));
  expect(await detected()).toEqual({ variant: 'nft', reason: 'rules in iptables-legacy: 3, in iptables-nft: 3' });
});

test('legacy tables that may not be read are an error, not ignored', async () => {
  await add('legacy', '*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n');
  const { runner } = namespace;
  const weak: CommandRunner = {
    run: (file, args, options) => runner.run('setpriv', ['--bounding-set=-net_raw', '--', file, ...args], options),
  };
  await expect(detected(weak)).rejects.toThrow(
    /^cannot detect which variant of iptables the node uses: reading iptables-legacy is not permitted: .* and CAP_NET_RAW, or configure/,
  );
  await add('nft', '*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n');
  expect(await detected(weak)).toMatchObject({ variant: 'nft' });
});
