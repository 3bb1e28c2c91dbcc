import { millis, UsageError } from '@switchyard/core';
import type { CommandResult } from '@switchyard/host';
import { describe, expect, test } from 'vitest';
import { FakeIptables } from './fake-iptables.ts';

const { signal } = new AbortController();
const timeout = millis(1000);

function run(fake: FakeIptables, line: string, stdin = ''): Promise<CommandResult> {
  const [file = '', ...args] = line.split(' ');
  return fake.run(file, args, { stdin, timeout, signal });
}

const restore = (fake: FakeIptables, text: string, variant = 'nft'): Promise<CommandResult> =>
  run(fake, `iptables-${variant}-restore --noflush -w 5`, text);

const table = (...lines: readonly string[]): string => `*nat\n${lines.join('\n')}\nCOMMIT\n`;

// test/privileged/fake.test.ts compares all this with the real programs.
describe('a restore', () => {
  test.each([
    { title: 'an unknown match', lines: ['-A A -m nonsense -j ACCEPT'], nft: 'line: 3', legacy: 'line: 3' },
    { title: 'an unknown option', lines: ['-A A --nonsense 1 -j ACCEPT'], nft: 'line: 3', legacy: 'line: 3' },
    { title: 'a missing chain', lines: ['-A B -j ACCEPT'], nft: 'line 3 failed: No chain', legacy: 'line 3 failed' },
    {
      title: 'a jump to a missing chain',
      lines: ['-A A -j B'],
      nft: "Chain 'B' does not exist",
      legacy: 'load target `B',
    },
    { title: 'a rule to delete that is missing', lines: ['-D A -j ACCEPT'], nft: 'Bad rule', legacy: 'line 3 failed' },
    {
      title: 'a chain to remove that is led to',
      lines: [':B - [0:0]', '-A A -j B', '-X B'],
      nft: 'line 5: CHAIN_DEL',
      legacy: 'line 5 failed',
    },
    {
      title: 'a chain to remove that is not empty',
      lines: ['-A A -j ACCEPT', '-X A'],
      nft: 'line 4: CHAIN_DEL',
      legacy: 'line 4 failed',
    },
    { title: 'a place beyond the end', lines: ['-I A 3 -j ACCEPT'], nft: 'too big', legacy: 'line 3 failed' },
    {
      title: 'a way that comes back',
      lines: ['-A OUTPUT -j A', ':B - [0:0]', '-A A -j B', '-A B -j A'],
      nft: 'Too many links',
      legacy: 'line 7 failed',
    },
  ])('is refused with the words of its variant: $title', async ({ lines, nft, legacy }) => {
    for (const [variant, words] of [
      ['nft', nft],
      ['legacy', legacy],
    ] as const) {
      const fake = new FakeIptables();
      const { exitCode, stderr } = await restore(fake, table(':A - [0:0]', ...lines), variant);
      expect(exitCode).not.toBe(0);
      expect(stderr).toContain(words);
      expect(fake.save('IPv4', variant), 'nothing of the table is written').toBe('');
    }
  });

  test('takes effect table by table', async () => {
    const fake = new FakeIptables();
    const { stderr } = await restore(fake, `*filter\n:F - [0:0]\nCOMMIT\n${table(':A - [0:0]', '-X NOBODY')}`);
    expect(stderr).toContain('line 6 failed');
    expect(fake.table('IPv4', 'nft', 'filter')?.chains.has('F')).toBe(true);
    expect(fake.table('IPv4', 'nft', 'nat')?.chains.has('A') ?? false).toBe(false);
  });

  test('with --noflush empties the chains that it declares, and no others; without it, all of the table', async () => {
    const fake = new FakeIptables();
    await restore(fake, table(':A - [0:0]', ':B - [0:0]', '-A A -j ACCEPT', '-A B -j ACCEPT'));
    await restore(fake, table(':A - [0:0]'));
    expect(fake.save('IPv4', 'nft')).toContain('-A B -j ACCEPT');
    expect(fake.save('IPv4', 'nft')).not.toContain('-A A');
    await run(fake, 'iptables-nft-restore', table(':A - [0:0]'));
    expect(fake.save('IPv4', 'nft')).not.toContain(':B');
  });

  test('is printed as iptables prints it, however it was written', async () => {
    const fake = new FakeIptables();
    await restore(
      fake,
      table(
        ':A - [0:0]',
        '-A A -m comment --comment shop/cart -m tcp -p tcp --dport 80 -d 10.96.0.1 -j MARK --or-mark 0x4000',
      ),
    );
    expect(fake.save('IPv4', 'nft')).toContain(
      '-A A -d 10.96.0.1/32 -p tcp -m comment --comment "shop/cart" -m tcp --dport 80 -j MARK --set-xmark 0x4000/0x4000',
    );
  });

  test('has families and variants of its own', async () => {
    const fake = new FakeIptables();
    await restore(fake, table(':A - [0:0]'));
    expect([fake.save('IPv6', 'nft'), fake.save('IPv4', 'legacy')]).toEqual(['', '']);
    expect((await run(fake, 'ip6tables-legacy-save -t nat')).stdout).not.toContain(':A');
  });
});

describe('what goes wrong on demand', () => {
  const good = `${table(':A - [0:0]')}*filter\n:F - [0:0]\n-A F -s 10.0.0.1 -j DROP\nCOMMIT\n`;

  test.each([
    ['nft', 'line 6:'],
    ['legacy', 'line 7 failed'],
  ] as const)('a refused line of %s leaves the tables before it', async (variant, words) => {
    const fake = new FakeIptables();
    fake.refusing = /10\.0\.0\.1/;
    expect((await restore(fake, good, variant)).stderr).toContain(words);
    expect(fake.save('IPv4', variant)).toBe(
      '*nat\n:PREROUTING ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n:A - [0:0]\nCOMMIT\n',
    );
  });

  test('another process holds the lock for a while', async () => {
    const fake = new FakeIptables();
    fake.contended = 1;
    expect(await restore(fake, good, 'legacy')).toMatchObject({
      exitCode: 4,
      stderr: expect.stringContaining('xtables lock'),
    });
    expect(await restore(fake, good, 'legacy')).toMatchObject({ exitCode: 0 });
  });

  test('half of the failures take effect nevertheless', async () => {
    const ends = await Promise.all(
      [0.1, 0.9].map(async (last) => {
        const fake = new FakeIptables();
        const numbers = [0, 0, last];
        fake.failures = { rate: 1, random: () => numbers.shift() ?? 0 };
        const { exitCode } = await restore(fake, good);
        return [exitCode, fake.save('IPv4', 'nft') === ''];
      }),
    );
    expect(ends).toEqual([
      [4, true],
      [137, false],
    ]);
  });

  test('a variant that is not installed cannot be run', async () => {
    const fake = new FakeIptables();
    fake.variants = ['legacy'];
    await expect(run(fake, 'iptables-nft --version')).rejects.toThrow(/no such program/);
    expect((await run(fake, 'iptables --version')).stdout).toBe('iptables v1.8.9 (legacy)\n');
  });
});

test.each(['iptables -t nat -A OUTPUT -j ACCEPT', 'iptables-save --nonsense', 'ebtables -L'])(
  'what only the fake does not know is no refusal: %s',
  async (line) => {
    await expect(run(new FakeIptables(), line)).rejects.toThrow(UsageError);
  },
);
