import { type ApplyOutcome } from '@switchyard/core/engine';
import { diffTables, type ForwardingTable, noopLogger, seconds } from '@switchyard/core';
import { here, situation, there } from '@switchyard/core/testing';
import type { CommandRunner } from '@switchyard/host';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { IptablesBackend } from '../../src/backend.ts';
import { openIptablesClient } from '../../src/testing/open-client.ts';
import { kubeProxyCluster, kubeProxyRules } from '../kube-proxy-rules.ts';
import { richTable } from '../rich-table.ts';
import { createNamespace, signal, type TestNamespace, variant } from './support.ts';

let namespace: TestNamespace;
beforeEach(async () => {
  namespace = await createNamespace();
});
afterEach(() => namespace[Symbol.asyncDispose]());

/** A process with no memory. `onInput` receives the input of programs. */
async function open(randomFully = true, onInput: (text: string) => void = () => undefined): Promise<IptablesBackend> {
  const runner: CommandRunner = {
    run: (file, args, options) => {
      const { stdin = '' } = options;
      return namespace.runner.run(file, args, {
        ...options,
        stdin: told(typeof stdin === 'string' ? [stdin] : stdin, onInput),
      });
    },
  };
  const client = await openIptablesClient({ runner, ipFamily: 'IPv4', variant }, signal);
  const choices = { masqueradeMark: 0x4000, dropInvalid: true, randomFully, nfacct: false };
  return new IptablesBackend({ client, runner, logger: noopLogger, choices, syncPeriod: seconds(30) });
}

function* told(pieces: Iterable<string>, onInput: (text: string) => void): Generator<string> {
  for (const piece of pieces) {
    onInput(piece);
    yield piece;
  }
}

const full = (backend: IptablesBackend, table: ForwardingTable): Promise<ApplyOutcome> =>
  backend.apply({ table, scope: { kind: 'full' } }, signal);

function change(backend: IptablesBackend, from: ForwardingTable, to: ForwardingTable): Promise<ApplyOutcome> {
  return backend.apply({ table: to, scope: { kind: 'delta', delta: diffTables(from, to) } }, signal);
}

const unchanged: ApplyOutcome = { status: 'applied', writes: 0 };

const save = (): Promise<string> => namespace.run(`iptables-${variant}-save`);

test('what was written is found as written by a process with no memory, for all kinds of rules', async () => {
  const table = richTable({ ipFamily: 'IPv4', localhostNodePorts: true });
  expect(await full(await open(), table)).toMatchObject({ status: 'applied' });
  const before = await save();
  expect(await full(await open(), table)).toEqual(unchanged);
  expect((await save()).replaceAll(/^#.*$/gm, '')).toBe(before.replaceAll(/^#.*$/gm, ''));
});

test('changes lead to the same rules as a fresh start', async () => {
  const rich = richTable({ ipFamily: 'IPv4' });
  const ports = [{ port: 80, nodePort: 30_080 }];
  const guarded = { ports, loadBalancerIps: ['198.51.100.7'], sourceRanges: ['203.0.113.0/24'] };
  const tables = [
    situation({
      cart: { ...guarded, endpoints: [here('10.244.1.1'), there('10.244.2.1')] },
      dry: { clusterIps: ['10.96.0.11'] },
    }),
    situation({
      cart: { ports, external: 'Local', endpoints: [there('10.244.2.1')] },
      dry: { clusterIps: ['10.96.0.11'], endpoints: ['10.244.3.1'] },
    }),
    situation({ cart: { ...guarded, endpoints: [] } }),
    rich,
    situation({}),
    situation({ cart: { ...guarded, endpoints: [here('10.244.1.1')] } }),
  ];
  const backend = await open();
  let last = tables[0] ?? rich;
  await full(backend, last);
  for (const table of tables.slice(1)) {
    expect(await change(backend, last, table)).toMatchObject({ status: 'applied' });
    expect(await full(await open(), table)).toEqual(unchanged);
    last = table;
  }
});

test("kube-proxy's chains stay as they are; what it alone has goes, what the kubelet has stays", async () => {
  const keys = [...kubeProxyRules.keys()].map((key) => key.split(' ') as [table: string, chain: string]);
  const text = ['nat', 'filter'].map((table) => {
    const chains = keys.filter(([of]) => of === table).map(([, chain]) => chain);
    const rules = chains.flatMap((chain) =>
      (kubeProxyRules.get(`${table} ${chain}`) ?? []).map((rule) => `-A ${chain} ${rule}`),
    );
    const plain = rules.filter((rule) => !rule.includes('nfacct'));
    const stale =
      table === 'nat'
        ? [
            ':KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]',
            ':KUBE-SEP-AAAAAAAAAAAAAAAA - [0:0]',
            '-A KUBE-SVC-AAAAAAAAAAAAAAAA -j KUBE-SEP-AAAAAAAAAAAAAAAA',
            '-I KUBE-SERVICES 1 -d 172.30.0.99/32 -j KUBE-SVC-AAAAAAAAAAAAAAAA',
          ]
        : [];
    const own = chains.filter((chain) => chain.startsWith('KUBE-')).map((chain) => `:${chain} - [0:0]`);
    return [`*${table}`, ...own, ...plain, ...stale, 'COMMIT', ''].join('\n');
  });
  await namespace.run(`iptables-${variant}-restore --noflush`, text.join(''));
  await namespace.run(`iptables-${variant} -A KUBE-FIREWALL -s 192.0.2.99/32 -j DROP`);
  const perService = (await save()).match(/^:KUBE-(SVC|SVL|EXT|FW|SEP)-(?!AAAA)\S+/gm) ?? [];
  expect(perService.length).toBeGreaterThan(15);
  const written: string[] = [];
  const backend = await open(false, (text) => written.push(text));
  expect(await full(backend, kubeProxyCluster)).toMatchObject({ status: 'applied' });
  // Chains of Services stood there as they are wanted.
  const rewritten = written.join('').match(/^:KUBE-(SVC|SVL|EXT|FW|SEP)-(?!AAAA)\S+/gm) ?? [];
  expect(rewritten).toEqual([]);
  const after = await save();
  expect(after).not.toContain('AAAAAAAAAAAAAAAA');
  expect(after).toContain('-A KUBE-FIREWALL -s 192.0.2.99/32 -j DROP');
  expect(await full(await open(false), kubeProxyCluster)).toEqual(unchanged);
});

test.each([
  ['a chain that lost a rule', (chain: string) => `-D ${chain} 1`],
  ['a chain with a rule of others', (chain: string) => `-I ${chain} 1 -j RETURN`],
  ['a shared chain without rules', () => '-F KUBE-SERVICES'],
  ['a missing jump', () => '-F PREROUTING'],
] as const)('%s is healed, and nothing else is written', async (_, command) => {
  const table = situation({ cart: { endpoints: [here('10.244.1.1')] } });
  const backend = await open();
  await full(backend, table);
  const whole = await backend.dump(signal);
  const chain = /^:(KUBE-SVC-\S+)/m.exec(whole)?.[1] ?? '';
  await namespace.run(`iptables-${variant} -t nat ${command(chain)}`);
  const outcome = await full(backend, table);
  expect(outcome).toMatchObject({ status: 'applied' });
  expect(outcome.status === 'applied' && outcome.writes).toBeLessThanOrEqual(2);
  expect(await backend.dump(signal)).toBe(whole);
});

test('a delta over a kernel that another process emptied ends as a full apply would', async () => {
  const before = situation({ cart: { endpoints: [here('10.244.1.1'), there('10.244.2.2')] } });
  const after = situation({ cart: { endpoints: [there('10.244.2.2')] } });
  const backend = await open();
  await full(backend, before);
  await namespace.run(`iptables-${variant} -t nat -F`);
  await namespace.run(`iptables-${variant} -t nat -X`);
  expect(await change(backend, before, after)).toMatchObject({ status: 'applied' });
  expect(await full(await open(), after)).toEqual(unchanged);
});

test('cleanup removes all own rules, and describes them', async () => {
  const backend = await open();
  const empty = await backend.dump(signal);
  await full(backend, richTable({ ipFamily: 'IPv4' }));
  expect(await backend.observers.age?.read(signal)).toBeUndefined();
  await backend.observers.age?.mark(signal);
  expect(await backend.observers.age?.read(signal)).toBeLessThan(5000);
  expect((await backend.cleanup(signal)).join('\n')).toMatch(/chains with \d+ rules/);
  expect(await backend.dump(signal)).toBe(empty);
  expect(await backend.cleanup(signal)).toEqual([]);
});
