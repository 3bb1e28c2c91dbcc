import { type ForwardingTable, type IpFamily, ipFamilies } from '@switchyard/core';
import { createPacketCounters } from '@switchyard/netfilter';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Chain, ChainRule, RenderedSettings } from '../../src/render/chains.ts';
import { openIptablesClient } from '../../src/testing/open-client.ts';
import type { IptablesClient } from '../../src/kernel/client/iptables-client.ts';
import { chainNames, nfacctNames } from '../../src/render/names.ts';
import { type RenderChoices, type RenderOptions, renderOptions } from '../../src/render/options.ts';
import { probabilityOf } from '../../src/render/endpoint-chains.ts';
import { renderService } from '../../src/render/render-service.ts';
import { renderHealthCheck, renderSettings } from '../../src/render/render-settings.ts';
import { kubeProxyCluster, kubeProxyRules } from '../kube-proxy-rules.ts';
import { richTable, type RichOptions } from '../rich-table.ts';
import { createNamespace, signal, type TestNamespace, variant } from './support.ts';

// Rendered rules equal what iptables prints, letter by letter: they are compared as text.

let namespace: TestNamespace;

beforeAll(async () => {
  namespace = await createNamespace();
  const counters = createPacketCounters({ netns: namespace.path });
  for (const name of Object.values(nfacctNames)) counters.ensure(name);
});
afterAll(() => namespace[Symbol.asyncDispose]());

const usual: RenderChoices = {
  masqueradeMark: 0x4000,
  dropInvalid: true,
  randomFully: true,
  nfacct: true,
  comments: true,
};

interface Row {
  readonly name: string;
  readonly table?: Omit<RichOptions, 'ipFamily'>;
  readonly choices?: Partial<RenderChoices>;
}

const someAddresses: Readonly<Record<IpFamily, readonly string[]>> = {
  IPv4: ['192.0.2.0/24', '127.0.0.0/8', '126.0.0.0/7', '10.0.0.1/32'],
  IPv6: ['2001:db8::/32', '::1/128', '::/64', 'fd00::1/128'],
};

const rows = (ipFamily: IpFamily): readonly Row[] => [
  { name: 'as usual' },
  { name: 'as usual, with NodePorts on loopback', table: { localhostNodePorts: true } },
  { name: 'without comments', choices: { comments: false } },
  {
    name: 'without what is optional',
    choices: { dropInvalid: false, randomFully: false, nfacct: false, masqueradeMark: 1 },
  },
  { name: 'with the highest mark', choices: { masqueradeMark: 2 ** 31 } },
  { name: 'with all masqueraded and NodePorts nowhere', table: { masqueradeAll: true, nodePortCidrs: [] } },
  { name: 'with pods told by interface', table: { podDetector: { kind: 'interface', name: 'cni0' } } },
  { name: 'with pods told by a prefix', table: { podDetector: { kind: 'interfacePrefix', prefix: 'veth' } } },
  {
    name: 'with pods told by a prefix as long as names are',
    table: { podDetector: { kind: 'interfacePrefix', prefix: 'a23456789012345' } },
  },
  { name: 'with no pods told', table: { podDetector: { kind: 'none' } } },
  { name: 'with NodePorts on some addresses', table: { nodePortCidrs: someAddresses[ipFamily] } },
  {
    name: 'with NodePorts on some addresses, loopback among them',
    table: { nodePortCidrs: someAddresses[ipFamily], localhostNodePorts: true },
  },
];

describe.each(ipFamilies)('%s', (ipFamily) => {
  let client: IptablesClient;

  beforeAll(async () => {
    client = await openIptablesClient({ runner: namespace.runner, ipFamily, variant }, signal);
  });

  beforeEach(async () => {
    const program = ipFamily === 'IPv4' ? 'iptables' : 'ip6tables';
    for (const table of ['mangle', 'filter', 'nat']) {
      for (const flag of ['-F', '-X']) await namespace.run(`${program}-${variant} -w 5 -t ${table} ${flag}`);
    }
  });

  test.each(rows(ipFamily))('the text of rules $name is what iptables prints', async ({ table, choices }) => {
    const forwarding = richTable({ ipFamily, ...table });
    const options = renderOptions(forwarding, { ...usual, ...choices });
    const wanted = everything(forwarding, options);
    expect(await client.restore(restoreText(wanted), signal)).toEqual({ status: 'done' });
    expect(await saved(client)).toEqual(wanted);
  });

  test('the chance of one in many is what iptables prints', async () => {
    const counts = [...Array(60).keys()].map((index) => index + 2).concat([100, 999, 1000, 4095, 4096, 4097, 20_000]);
    const rules = counts.map((count) => `-m statistic --mode random --probability ${probabilityOf(count)} -j RETURN`);
    // As kube-proxy writes them.
    const theirs = counts.map(
      (count) => `-m statistic --mode random --probability ${(1 / count).toFixed(10)} -j RETURN`,
    );
    const chains = new Map([
      ['nat OURS', rules],
      ['nat THEIRS', theirs],
    ]);
    expect(await client.restore(restoreText(chains), signal)).toEqual({ status: 'done' });
    const read = await saved(client);
    expect(read.get('nat OURS')).toEqual(rules);
    expect(read.get('nat THEIRS')).toEqual(rules);
  });
});

test("kube-proxy's rules for the same Services are read as ours, but for the comment of a health check", async () => {
  const client = await openIptablesClient({ runner: namespace.runner, ipFamily: 'IPv4', variant }, signal);
  for (const table of ['mangle', 'filter', 'nat']) {
    for (const flag of ['-F', '-X']) await namespace.run(`iptables-${variant} -w 5 -t ${table} ${flag}`);
  }
  expect(await client.restore(restoreText(kubeProxyRules), signal)).toEqual({ status: 'done' });
  const theirs = await saved(client);
  const ours = new Map(everything(kubeProxyCluster, renderOptions(kubeProxyCluster, { ...usual, randomFully: false })));
  const { shared } = renderSettings(renderOptions(kubeProxyCluster, usual));
  const unordered = new Set(shared.map(({ table, name }) => `${table} ${name}`));
  for (const name of theirs.keys()) {
    const [wanted, found] = [ours.get(name) ?? [], theirs.get(name) ?? []].map((rules) =>
      // The order of Services is not promised; the place of the last rule is.
      unordered.has(name) ? [...rules.slice(0, -1).toSorted(), ...rules.slice(-1)] : rules,
    );
    const asTheirs = wanted?.map((rule) => rule.replace('ns2/svc2 health check', 'ns2/svc2:p80 health check'));
    expect(found, name).toEqual(asTheirs);
    ours.delete(name);
  }
  const ownChains = [...ours.keys()].filter((name) => !kernels.has(name.split(' ')[1] ?? ''));
  expect(ownChains, 'only canaries are not in the text').toEqual(
    ['mangle', 'nat', 'filter'].map((table) => `${table} ${chainNames.canary}`),
  );
});

/** All rules, by table and chain, in the order in which they are to stand. */
function everything(table: ForwardingTable, options: RenderOptions): ReadonlyMap<string, readonly string[]> {
  const settings = renderSettings(options);
  const services = [...table.services.values()].map((service) => renderService(service, options));
  const chains = new Map<string, string[]>();
  const open = ({ table: of, name, rules }: Chain): void => void chains.set(`${of} ${name}`, [...rules]);
  settings.chains.forEach(open);
  for (const { chains: own } of services) own.forEach(open);
  const entries: ChainRule[] = services.flatMap((service) => service.entries);
  for (const check of table.healthChecks.values()) entries.push(renderHealthCheck(check));
  for (const { table: of, name, rules } of settings.shared) {
    const before = entries.filter((entry) => entry.table === of && entry.chain === name).map(({ rule }) => rule);
    chains.set(`${of} ${name}`, [...before, ...rules]);
  }
  place(settings, chains);
  return chains;
}

function place(settings: RenderedSettings, chains: Map<string, string[]>): void {
  for (const { table, name } of settings.ensured.chains) chains.set(`${table} ${name}`, []);
  for (const { table, chain, rule, place: where } of [...settings.jumps, ...settings.ensured.rules]) {
    const before = chains.get(`${table} ${chain}`) ?? [];
    chains.set(`${table} ${chain}`, where === 'first' ? [rule, ...before] : [...before, rule]);
  }
}

const kernels = new Set(['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING']);

function restoreText(chains: ReadonlyMap<string, readonly string[]>): string {
  const tables = ['mangle', 'filter', 'nat'].map((table) => {
    const own = [...chains].filter(([name]) => name.startsWith(`${table} `));
    const lines = own.map(([name, rules]) => ({ chain: name.slice(table.length + 1), rules }));
    return [
      `*${table}`,
      ...lines.filter(({ chain }) => !kernels.has(chain)).map(({ chain }) => `:${chain} - [0:0]`),
      ...lines.flatMap(({ chain, rules }) => rules.map((rule) => `-A ${chain} ${rule}`)),
      'COMMIT',
    ];
  });
  return `${tables.flat().join('\n')}\n`;
}

/** Rules of the kernel, without its empty built-in chains. */
async function saved(client: IptablesClient): Promise<ReadonlyMap<string, readonly string[]>> {
  const chains = new Map<string, string[]>();
  for (const table of ['mangle', 'filter', 'nat'] as const) {
    const reader = {
      chain: (name: string) => void chains.set(`${table} ${name}`, []),
      rule: (chain: string, rule: string) => void chains.get(`${table} ${chain}`)?.push(rule),
    };
    await client.read(table, reader, signal);
  }
  for (const [name, rules] of chains) {
    if (rules.length === 0 && kernels.has(name.slice(name.indexOf(' ') + 1))) chains.delete(name);
  }
  return chains;
}
