import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { TableName } from '../../src/render/chains.ts';
import { openIptablesClient } from '../../src/testing/open-client.ts';
import type { IptablesClient, RestoreResult } from '../../src/kernel/client/iptables-client.ts';
import { createNamespace, signal, type TestNamespace, variant } from './support.ts';

let namespace: TestNamespace;
let client: IptablesClient;

beforeAll(async () => {
  namespace = await createNamespace();
  const { runner } = namespace;
  client = await openIptablesClient({ runner, ipFamily: 'IPv4', variant }, signal);
});
afterAll(() => namespace[Symbol.asyncDispose]());

beforeEach(async () => {
  for (const table of ['nat', 'filter']) {
    for (const flag of ['-F', '-X']) await namespace.run(`iptables-${variant} -w 5 -t ${table} ${flag}`);
  }
});

async function contentOf(table: TableName): Promise<readonly string[]> {
  const lines: string[] = [];
  await client.read(
    table,
    {
      chain: (name, policy) => lines.push(`${name} ${policy}`),
      rule: (chain, rule) => lines.push(`${chain}: ${rule}`),
    },
    signal,
  );
  return lines.filter((line) => !/^(PREROUTING|INPUT|FORWARD|OUTPUT|POSTROUTING) ACCEPT$/.test(line));
}

async function written(text: string | Iterable<string>): Promise<RestoreResult> {
  return client.restore(text, signal);
}

const comment = String.raw`"say \"-c 1 2 -j X\" -- \\ done"`;
const content = `*nat
:ONE - [0:0]
:TWO - [0:0]
-A PREROUTING -j ONE
[7:420] -A ONE -s 192.0.2.1/32 -p tcp -m comment --comment ${comment} -m tcp --dport 80 -j TWO
-A ONE -m statistic --mode random --probability 0.50000000000 -g TWO
-A ONE
-A TWO -p udp -j DNAT --to-destination 192.0.2.9:53
COMMIT
*filter
:THREE - [0:0]
-A THREE -j DROP
COMMIT
`;

describe('the client', () => {
  test('knows the version', () => {
    expect(client.version).toMatch(/^1\.8\.\d+$/);
  });

  test('reads what it wrote', async () => {
    expect(await written(content.replace('[7:420] ', ''))).toEqual({ status: 'done' });
    expect(await contentOf('nat')).toEqual([
      'ONE -',
      'TWO -',
      'PREROUTING: -j ONE',
      `ONE: -s 192.0.2.1/32 -p tcp -m comment --comment ${comment} -m tcp --dport 80 -j TWO`,
      'ONE: -m statistic --mode random --probability 0.50000000000 -g TWO',
      'ONE: ',
      'TWO: -p udp -j DNAT --to-destination 192.0.2.9:53',
    ]);
    expect(await contentOf('filter')).toEqual(['THREE -', 'THREE: -j DROP']);
  });

  test('writes a text in pieces that end anywhere', async () => {
    const pieces = content.replace('[7:420] ', '').match(/[^]{1,11}/g) ?? [];
    expect(await written(pieces)).toEqual({ status: 'done' });
    expect(await contentOf('filter')).toEqual(['THREE -', 'THREE: -j DROP']);
  });

  test('lists counters', async () => {
    // Counters in a text are taken with this flag only, which the client does not give.
    await namespace.run(`iptables-${variant}-restore --noflush --counters`, content);
    expect(await client.list('nat', 'ONE', signal)).toEqual([
      {
        rule: `-s 192.0.2.1/32 -p tcp -m comment --comment ${comment} -m tcp --dport 80 -j TWO`,
        packets: 7,
        bytes: 420,
      },
      { rule: '-m statistic --mode random --probability 0.50000000000 -g TWO', packets: 0, bytes: 0 },
      { rule: '', packets: 0, bytes: 0 },
    ]);
    expect(await client.list('nat', 'TWO', signal)).toHaveLength(1);
  });

  test('distinguishes an empty chain from a missing one', async () => {
    await written('*nat\n:ONE - [0:0]\nCOMMIT\n');
    expect(await client.list('nat', 'ONE', signal)).toEqual([]);
    expect(await client.list('nat', 'NONE', signal)).toBeUndefined();
    expect(await client.list('nat', 'PREROUTING', signal)).toEqual([]);
  });
});

describe('a refused text', () => {
  const kernelRefusal = variant === 'legacy' ? 5 : 4; // legacy names the COMMIT
  test.each<[string, string, number | undefined]>([
    ['an option that does not exist', '*nat\n:ONE - [0:0]\n-A ONE -p tcp --dporty 4 -j RETURN\nCOMMIT\n', 3],
    ['an address that is none', '*nat\n:ONE - [0:0]\n-A ONE -d 300.0.0.1/32 -j RETURN\nCOMMIT\n', 3],
    ['an unknown match', '*nat\n:ONE - [0:0]\n-A ONE -m nosuch -j RETURN\nCOMMIT\n', 3],
    ['a rule for a chain that does not exist', '*nat\n:ONE - [0:0]\n-A NONE -j RETURN\nCOMMIT\n', 3],
    ['a rule to delete that does not exist', '*nat\n:ONE - [0:0]\n-D PREROUTING -j ONE\nCOMMIT\n', 3],
    ['a chain to delete that does not exist', '*nat\n:ONE - [0:0]\n-X NONE\nCOMMIT\n', 3],
    ['a chain to delete that is used', '*nat\n:ONE - [0:0]\n:TWO - [0:0]\n-A ONE -j TWO\n-X TWO\nCOMMIT\n', 5],
    [
      'a target in the wrong table',
      '*filter\n:ONE - [0:0]\n-A ONE -j RETURN\n-A ONE -j DNAT --to-destination 192.0.2.1\nCOMMIT\n',
      kernelRefusal,
    ],
    ['no sense', '*nat\n:ONE - [0:0]\nnonsense\nCOMMIT\n', 3],
  ])('%s: the line is named, and nothing is written', async (_, text, line) => {
    const result = await written(text);
    expect(result).toMatchObject({ status: 'refused', line, isTransient: false });
    expect(result.status === 'refused' && result.error.message).toMatch(
      new RegExp(
        `^cannot write rules with iptables-${variant}: iptables-${variant}-restore exited with \\d and said: \\S`,
      ),
    );
    expect(await contentOf('nat')).toEqual([]);
    expect(await contentOf('filter')).toEqual([]);
  });

  test('leaves the tables before it written', async () => {
    const result = await written(`${content.replace('[7:420] ', '')}*nat\n-A NONE -j RETURN\nCOMMIT\n`);
    expect(result).toMatchObject({ status: 'refused', line: 15 });
    expect(await contentOf('filter')).toHaveLength(2);
  });
});
