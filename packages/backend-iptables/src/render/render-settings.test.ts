import { tableOf, tableOptions } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import type { Chain, TableName } from './chains.ts';
import { type RenderChoices, renderOptions } from './options.ts';
import { renderHealthCheck, renderSettings } from './render-settings.ts';
import { parsePort, serviceKey } from '@switchyard/core';

const usual: RenderChoices = {
  masqueradeMark: 0x4000,
  dropInvalid: true,
  randomFully: true,
  nfacct: false,
  comments: true,
};

const rendered = (
  choices: Partial<RenderChoices> = {},
  table: Parameters<typeof tableOptions>[0] = {},
): ReturnType<typeof renderSettings> =>
  renderSettings(renderOptions(tableOf({}, tableOptions(table)), { ...usual, ...choices }));

const rulesOf = (chains: readonly Chain[], table: TableName, name: string): Chain['rules'] | undefined =>
  chains.find((chain) => chain.table === table && chain.name === name)?.rules;

describe('chains that are written whole', () => {
  test.each([
    ['nat', 'KUBE-MARK-MASQ', {}, ['-j MARK --set-xmark 0x4000/0x4000']],
    ['nat', 'KUBE-MARK-MASQ', { masqueradeMark: 2 ** 31 }, ['-j MARK --set-xmark 0x80000000/0x80000000']],
    [
      // Fact 75: the mark is cleared when it is used.
      'nat',
      'KUBE-POSTROUTING',
      {},
      [
        '-m mark ! --mark 0x4000/0x4000 -j RETURN',
        '-j MARK --set-xmark 0x4000/0x0',
        '-m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully',
      ],
    ],
    [
      'nat',
      'KUBE-POSTROUTING',
      { randomFully: false, masqueradeMark: 1 },
      [
        '-m mark ! --mark 0x1/0x1 -j RETURN',
        '-j MARK --set-xmark 0x1/0x0',
        '-m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE',
      ],
    ],
    [
      // Fact 76: what is marked, and what was let in before, passes regardless of the policy of FORWARD.
      'filter',
      'KUBE-FORWARD',
      {},
      [
        '-m conntrack --ctstate INVALID -j DROP',
        '-m comment --comment "kubernetes forwarding rules" -m mark --mark 0x4000/0x4000 -j ACCEPT',
        '-m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
      ],
    ],
    ['mangle', 'KUBE-PROXY-CANARY', {}, []],
    ['nat', 'KUBE-PROXY-CANARY', {}, []],
    ['filter', 'KUBE-PROXY-CANARY', {}, []],
  ] as const)('%s %s with %o', (table, name, choices, rules) => {
    expect(rulesOf(rendered(choices).chains, table, name)).toEqual(rules);
  });

  test.each([
    [
      'counted',
      { nfacct: true },
      '-m conntrack --ctstate INVALID -m nfacct --nfacct-name  ct_state_invalid_dropped_pkts -j DROP',
    ],
    ['not dropped where conntrack is liberal (fact 52)', { dropInvalid: false }, undefined],
  ])('INVALID packets are %s', (_, choices, rule) => {
    const rules = rulesOf(rendered(choices).chains, 'filter', 'KUBE-FORWARD') ?? [];
    expect(rules.find((text) => text.includes('INVALID'))).toBe(rule);
  });
});

describe('chains of entries', () => {
  const note = '-m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain"';
  const local = '-m addrtype --dst-type LOCAL -j KUBE-NODEPORTS';

  // Fact 32: so an address that is a Service's and this node's as well is the Service's.
  test.each([
    ['all addresses but loopback', {}, [`! -d 127.0.0.0/8 ${note} ${local}`]],
    ['all addresses', { localhostNodePorts: true }, [`${note} ${local}`]],
    ['all addresses but loopback, in IPv6', { ipFamily: 'IPv6' }, [`! -d ::1/128 ${note} ${local}`]],
    ['one range', { nodePortCidrs: ['192.0.2.0/24'] }, [`-d 192.0.2.0/24 ${note} ${local}`]],
    ['no address', { nodePortCidrs: [] }, []],
  ] as const)('the tail of KUBE-SERVICES leads to NodePorts on %s', (_, table, tail) => {
    expect(rulesOf(rendered({}, table).shared, 'nat', 'KUBE-SERVICES')).toEqual(tail);
  });

  test('all others have nothing behind the entries of Services', () => {
    const others = rendered().shared.filter(({ table, name }) => table !== 'nat' || name !== 'KUBE-SERVICES');
    expect(others.map(({ table, name }) => `${table} ${name}`)).toEqual([
      'nat KUBE-NODEPORTS',
      'filter KUBE-SERVICES',
      'filter KUBE-EXTERNAL-SERVICES',
      'filter KUBE-NODEPORTS',
      'filter KUBE-PROXY-FIREWALL',
    ]);
    expect(others.every(({ rules }) => rules.length === 0)).toBe(true);
  });
});

test('packets meet the jumps of a kernel chain in the order of kube-proxy', () => {
  const met: Record<string, string[]> = {};
  for (const { table, chain, rule, place } of rendered().jumps) {
    expect(place).toBe('first');
    (met[`${table} ${chain}`] ??= []).unshift(rule.replace(/-m comment --comment "[^"]*" /, ''));
  }
  const onNew = '-m conntrack --ctstate NEW -j';
  expect(met).toEqual({
    'filter INPUT': [`${onNew} KUBE-PROXY-FIREWALL`, '-j KUBE-NODEPORTS', `${onNew} KUBE-EXTERNAL-SERVICES`],
    'filter FORWARD': [
      `${onNew} KUBE-PROXY-FIREWALL`,
      '-j KUBE-FORWARD',
      `${onNew} KUBE-SERVICES`,
      `${onNew} KUBE-EXTERNAL-SERVICES`,
    ],
    'filter OUTPUT': [`${onNew} KUBE-PROXY-FIREWALL`, `${onNew} KUBE-SERVICES`],
    'nat PREROUTING': ['-j KUBE-SERVICES'],
    'nat OUTPUT': ['-j KUBE-SERVICES'],
    'nat POSTROUTING': ['-j KUBE-POSTROUTING'],
  });
});

describe('the rule that protects loopback where NodePorts answer on it (fact 31)', () => {
  test('is shared with the kubelet, whose chain is neither emptied nor removed', () => {
    const { ensured, chains, shared } = rendered({}, { localhostNodePorts: true });
    expect(ensured.chains).toEqual([{ table: 'filter', name: 'KUBE-FIREWALL' }]);
    expect(ensured.rules.map(({ chain, rule }) => `${chain}: ${rule}`)).toEqual([
      'KUBE-FIREWALL: ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" ' +
        '-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP',
      'INPUT: -j KUBE-FIREWALL',
      'OUTPUT: -j KUBE-FIREWALL',
    ]);
    expect([...chains, ...shared].some(({ name }) => name === 'KUBE-FIREWALL')).toBe(false);
  });

  test.each([
    ['not enabled', {}],
    ['enabled in IPv6', { ipFamily: 'IPv6', localhostNodePorts: true }],
    [
      'enabled, with NodePort addresses without loopback',
      { localhostNodePorts: true, nodePortCidrs: ['192.0.2.0/24'] },
    ],
  ] as const)('is not there where they do not: %s', (_, table) => {
    expect(rendered({}, table).ensured).toEqual({ chains: [], rules: [] });
  });
});

test('the server of health checks is let in', () => {
  const check = { service: serviceKey('shop', 'cart'), port: parsePort(31_000), localReadyEndpoints: 0 };
  expect(renderHealthCheck(check)).toEqual({
    table: 'filter',
    chain: 'KUBE-NODEPORTS',
    rule: '-p tcp -m comment --comment "shop/cart health check node port" -m tcp --dport 31000 -j ACCEPT',
  });
});
