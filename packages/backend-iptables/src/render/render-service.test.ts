import type { ForwardingTable } from '@switchyard/core';
import {
  node,
  type OptionsSpec,
  service,
  type ServiceSpec,
  slice,
  type SliceSpec,
  tableOf,
  tableOptions,
} from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import { type RenderChoices, renderOptions } from './options.ts';
import { renderService } from './render-service.ts';

const usual: RenderChoices = {
  masqueradeMark: 0x4000,
  dropInvalid: true,
  randomFully: true,
  nfacct: false,
  comments: true,
};

const here = { ip: '10.244.1.5', node: 'n1' };
const there = { ip: '10.244.2.10', node: 'n2' };
const vip = '198.51.100.7';
const http = [{ name: 'http', port: 80, nodePort: 30080 }];

interface Given {
  readonly service?: ServiceSpec;
  readonly endpoints?: SliceSpec['endpoints'];
  readonly table?: OptionsSpec;
  readonly choices?: Partial<RenderChoices>;
}

function tableWith({ service: spec = {}, endpoints = [there, here], table = {} }: Given): ForwardingTable {
  const ports = (spec.ports ?? []).map(({ name = '', protocol = 'TCP' }) => ({ name, protocol, port: 8080 }));
  const given = slice('shop/cart', { endpoints, ...(ports.length === 0 ? {} : { ports }) });
  return tableOf(
    { services: [service('shop/cart', spec)], slices: [given], nodes: [node('n1', { addresses: ['192.0.2.1'] })] },
    tableOptions(table),
  );
}

/** All rules of the Service `shop/cart` in `iptables-save`'s spelling, the nat table's first; names are cut to their kind. */
function rulesOf(given: Given): readonly string[] {
  const table = tableWith(given);
  const options = renderOptions(table, { ...usual, ...given.choices });
  const lines = [...table.services.values()].flatMap((port) => {
    const { chains, entries } = renderService(port, options);
    return [
      ...chains.flatMap((chain) => chain.rules.map((rule) => `${chain.table} ${chain.name} ${rule}`)),
      ...entries.map((entry) => `${entry.table} ${entry.chain} ${entry.rule}`),
    ];
  });
  return lines.map((line) => line.replaceAll(/KUBE-(SVC|SVL|EXT|FW)-[A-Z2-7]{16}/g, 'KUBE-$1'));
}

/** The same without comments and names of endpoints' chains, but with those that lead to them. */
function shortRulesOf(given: Given): readonly string[] {
  return rulesOf(given).map((line) =>
    line.replace(/-m comment --comment "[^"]*" ?/, '').replaceAll(/KUBE-SEP-[A-Z2-7]{16}/g, 'KUBE-SEP'),
  );
}

const ofChain = (rules: readonly string[], chain: string): readonly string[] =>
  rules.filter((rule) => rule.startsWith(`${chain} `)).map((rule) => rule.slice(chain.length + 1));

describe('as an operator reads it', () => {
  test('a cluster IP with two endpoints', () => {
    expect(rulesOf({ service: { ports: [{ name: 'http', port: 80 }] } })).toEqual([
      'nat KUBE-SEP-27VOFYQ7SVOL37XI -s 10.244.1.5/32 -m comment --comment "shop/cart:http" -j KUBE-MARK-MASQ',
      'nat KUBE-SEP-27VOFYQ7SVOL37XI -p tcp -m comment --comment "shop/cart:http" -m tcp -j DNAT --to-destination 10.244.1.5:8080',
      'nat KUBE-SEP-AHX6A5TRFKKVMIQX -s 10.244.2.10/32 -m comment --comment "shop/cart:http" -j KUBE-MARK-MASQ',
      'nat KUBE-SEP-AHX6A5TRFKKVMIQX -p tcp -m comment --comment "shop/cart:http" -m tcp -j DNAT --to-destination 10.244.2.10:8080',
      'nat KUBE-SVC ! -s 10.244.0.0/16 -d 10.96.0.10/32 -p tcp -m comment --comment "shop/cart:http cluster IP" -m tcp --dport 80 -j KUBE-MARK-MASQ',
      'nat KUBE-SVC -m comment --comment "shop/cart:http -> 10.244.1.5:8080" -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-27VOFYQ7SVOL37XI',
      'nat KUBE-SVC -m comment --comment "shop/cart:http -> 10.244.2.10:8080" -j KUBE-SEP-AHX6A5TRFKKVMIQX',
      'nat KUBE-SERVICES -d 10.96.0.10/32 -p tcp -m comment --comment "shop/cart:http cluster IP" -m tcp --dport 80 -j KUBE-SVC',
    ]);
  });

  test('a load balancer with policy Local, source ranges and an endpoint on this node', () => {
    const spec: ServiceSpec = {
      ports: http,
      loadBalancerIps: [vip],
      sourceRanges: ['203.0.113.0/24'],
      external: 'Local',
    };
    const rules = rulesOf({ service: spec, endpoints: [here] });
    expect(rules.filter((rule) => !/KUBE-SEP-\w+ |nat KUBE-SVC /.test(rule))).toEqual([
      'nat KUBE-SVL -m comment --comment "shop/cart:http -> 10.244.1.5:8080" -j KUBE-SEP-27VOFYQ7SVOL37XI',
      'nat KUBE-EXT -s 10.244.0.0/16 -m comment --comment "pod traffic for shop/cart:http external destinations" -j KUBE-SVC',
      'nat KUBE-EXT -m comment --comment "masquerade LOCAL traffic for shop/cart:http external destinations" -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ',
      'nat KUBE-EXT -m comment --comment "route LOCAL traffic for shop/cart:http external destinations" -m addrtype --src-type LOCAL -j KUBE-SVC',
      'nat KUBE-EXT -j KUBE-SVL',
      'nat KUBE-FW -s 203.0.113.0/24 -m comment --comment "shop/cart:http loadbalancer IP" -j KUBE-EXT',
      'nat KUBE-FW -m comment --comment "other traffic to shop/cart:http will be dropped by KUBE-PROXY-FIREWALL"',
      'nat KUBE-SERVICES -d 10.96.0.10/32 -p tcp -m comment --comment "shop/cart:http cluster IP" -m tcp --dport 80 -j KUBE-SVC',
      'nat KUBE-SERVICES -d 198.51.100.7/32 -p tcp -m comment --comment "shop/cart:http loadbalancer IP" -m tcp --dport 80 -j KUBE-FW',
      'filter KUBE-PROXY-FIREWALL -d 198.51.100.7/32 -p tcp -m comment --comment "shop/cart:http traffic not accepted by KUBE-FW" -m tcp --dport 80 -j DROP',
      'nat KUBE-NODEPORTS -p tcp -m comment --comment "shop/cart:http" -m tcp --dport 30080 -j KUBE-EXT',
    ]);
  });

  test('a Service without endpoints has no chains, only rules that reject', () => {
    const spec: ServiceSpec = {
      ports: [{ port: 53, protocol: 'UDP', nodePort: 30053 }],
      externalIps: ['198.51.100.9'],
    };
    expect(rulesOf({ service: spec, endpoints: [], table: { localhostNodePorts: true } })).toEqual([
      'filter KUBE-SERVICES -d 10.96.0.10/32 -p udp -m comment --comment "shop/cart has no endpoints" -m udp --dport 53 -j REJECT --reject-with icmp-port-unreachable',
      'filter KUBE-EXTERNAL-SERVICES -d 198.51.100.9/32 -p udp -m comment --comment "shop/cart has no endpoints" -m udp --dport 53 -j REJECT --reject-with icmp-port-unreachable',
      'filter KUBE-EXTERNAL-SERVICES -p udp -m comment --comment "shop/cart has no endpoints" -m addrtype --dst-type LOCAL -m udp --dport 30053 -j REJECT --reject-with icmp-port-unreachable',
    ]);
  });

  test('session affinity over IPv6: the endpoint of this client first, and each remembers its clients', () => {
    const rules = rulesOf({
      service: { clusterIps: ['fd00:10:96::10'], affinitySeconds: 10_800 },
      endpoints: ['fd00:10:244::5'],
      table: { ipFamily: 'IPv6', podCidr: 'none' },
    });
    const list = '--name KUBE-SEP-STOBZB22V7GW47GX --mask ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff --rsource';
    expect(rules).toEqual([
      'nat KUBE-SEP-STOBZB22V7GW47GX -s fd00:10:244::5/128 -m comment --comment "shop/cart" -j KUBE-MARK-MASQ',
      `nat KUBE-SEP-STOBZB22V7GW47GX -p tcp -m comment --comment "shop/cart" -m recent --set ${list} -m tcp -j DNAT --to-destination [fd00:10:244::5]:8080`,
      `nat KUBE-SVC -m comment --comment "shop/cart -> [fd00:10:244::5]:8080" -m recent --rcheck --seconds 10800 --reap ${list} -j KUBE-SEP-STOBZB22V7GW47GX`,
      'nat KUBE-SVC -m comment --comment "shop/cart -> [fd00:10:244::5]:8080" -j KUBE-SEP-STOBZB22V7GW47GX',
      'nat KUBE-SERVICES -d fd00:10:96::10/128 -p tcp -m comment --comment "shop/cart cluster IP" -m tcp --dport 80 -j KUBE-SVC',
    ]);
  });
});

describe("kube-proxy's facts", () => {
  test.each([
    ['no sender, where pods are unknown', { podCidr: 'none' }, []],
    ['all but pods', {}, ['! -s 10.244.0.0/16 -d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j KUBE-MARK-MASQ']],
    [
      'everybody, with masqueradeAll',
      { masqueradeAll: true },
      ['-d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j KUBE-MARK-MASQ'],
    ],
    [
      'all that does not come in by the bridge of pods',
      { podDetector: { kind: 'interface', name: 'cni0' } },
      ['-d 10.96.0.10/32 ! -i cni0 -p tcp -m tcp --dport 80 -j KUBE-MARK-MASQ'],
    ],
    [
      'all that does not come in by an interface of pods',
      { podDetector: { kind: 'interfacePrefix', prefix: 'veth' } },
      ['-d 10.96.0.10/32 ! -i veth+ -p tcp -m tcp --dport 80 -j KUBE-MARK-MASQ'],
    ],
  ] as const)('A1 31: at the cluster IP is masqueraded %s', (_, table, expected) => {
    const rules = ofChain(shortRulesOf({ table, endpoints: [here] }), 'nat KUBE-SVC');
    expect(rules).toEqual([...expected, '-j KUBE-SEP']);
  });

  test.each([
    ['policy Cluster', { external: 'Cluster' }, [here], {}, ['-j KUBE-MARK-MASQ', '-j KUBE-SVC']],
    [
      'policy Local with an endpoint here',
      { external: 'Local' },
      [here],
      {},
      [
        '-s 10.244.0.0/16 -j KUBE-SVC',
        '-m addrtype --src-type LOCAL -j KUBE-MARK-MASQ',
        '-m addrtype --src-type LOCAL -j KUBE-SVC',
        '-j KUBE-SVL',
      ],
    ],
    [
      'policy Local without one: the short circuit stays',
      { external: 'Local' },
      [there],
      {},
      [
        '-s 10.244.0.0/16 -j KUBE-SVC',
        '-m addrtype --src-type LOCAL -j KUBE-MARK-MASQ',
        '-m addrtype --src-type LOCAL -j KUBE-SVC',
      ],
    ],
    [
      'policy Local where pods are not told: no short circuit for them',
      { external: 'Local' },
      [here],
      { podCidr: 'none' },
      ['-m addrtype --src-type LOCAL -j KUBE-MARK-MASQ', '-m addrtype --src-type LOCAL -j KUBE-SVC', '-j KUBE-SVL'],
    ],
  ] as const)('fact 10: from outside, by %s', (_, policy, endpoints, table, expected) => {
    const rules = shortRulesOf({ service: { ports: http, ...policy }, endpoints, table });
    expect(ofChain(rules, 'nat KUBE-EXT')).toEqual(expected);
  });

  test('fact 7: no endpoint on this node under policy Local is a silent drop, at every frontend', () => {
    const spec: ServiceSpec = { ports: http, loadBalancerIps: [vip], external: 'Local', internal: 'Local' };
    const rules = shortRulesOf({ service: spec, endpoints: [there] });
    expect(rules.filter((rule) => rule.startsWith('filter'))).toEqual([
      'filter KUBE-SERVICES -d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j DROP',
      'filter KUBE-EXTERNAL-SERVICES -d 198.51.100.7/32 -p tcp -m tcp --dport 80 -j DROP',
      'filter KUBE-EXTERNAL-SERVICES ! -d 127.0.0.0/8 -p tcp -m addrtype --dst-type LOCAL -m tcp --dport 30080 -j DROP',
    ]);
    expect(rulesOf({ service: spec, endpoints: [there] }).join('\n')).toContain(
      '"shop/cart:http has no local endpoints"',
    );
  });

  test('fact 8: a cluster IP under policy Local alone has no chain of all endpoints', () => {
    const rules = shortRulesOf({ service: { internal: 'Local' } });
    expect(new Set(rules.map((rule) => rule.split(' ')[1]))).toEqual(
      new Set(['KUBE-SEP', 'KUBE-SVL', 'KUBE-SERVICES']),
    );
  });

  test('facts 19 and 21: a range of all addresses switches the filter off; external IPs and NodePorts are never filtered', () => {
    const spec: ServiceSpec = { ports: http, loadBalancerIps: [vip], externalIps: ['198.51.100.9'] };
    const open = shortRulesOf({ service: { ...spec, sourceRanges: ['0.0.0.0/0'] } });
    expect(open.join('\n')).not.toMatch(/KUBE-FW|FIREWALL/);
    const guarded = shortRulesOf({ service: { ...spec, sourceRanges: ['10.0.0.0/8'] } });
    expect(guarded.filter((rule) => rule.endsWith('-j KUBE-FW'))).toEqual([
      'nat KUBE-SERVICES -d 198.51.100.7/32 -p tcp -m tcp --dport 80 -j KUBE-FW',
    ]);
  });

  test('fact 23: source ranges of a Service without endpoints have no chain: it rejects', () => {
    const spec: ServiceSpec = { loadBalancerIps: [vip], sourceRanges: ['10.0.0.0/8'] };
    expect(ofChain(shortRulesOf({ service: spec, endpoints: [] }), 'filter KUBE-EXTERNAL-SERVICES')).toEqual([
      '-d 198.51.100.7/32 -p tcp -m tcp --dport 80 -j REJECT --reject-with icmp-port-unreachable',
    ]);
    expect(rulesOf({ service: spec, endpoints: [] }).join('\n')).not.toMatch(/KUBE-FW|FIREWALL/);
  });

  test('fact 22: where a range has the node, what loops back from a load-balancer IP gets through as well', () => {
    const spec: ServiceSpec = { loadBalancerIps: [vip], sourceRanges: ['192.0.2.0/24'] };
    const rules = shortRulesOf({ service: spec });
    expect(ofChain(rules, 'nat KUBE-FW')).toEqual(['-s 192.0.2.0/24 -j KUBE-EXT', `-s ${vip}/32 -j KUBE-EXT`, '']);
  });

  test.each([
    ['REJECT --reject-with icmp-port-unreachable', 'IPv4', '10.96.0.10'],
    ['REJECT --reject-with icmp6-port-unreachable', 'IPv6', 'fd00:10:96::10'],
  ] as const)('fact 63: for TCP as well, %s', (target, ipFamily, clusterIp) => {
    const [rule] = rulesOf({ service: { clusterIps: [clusterIp] }, endpoints: [], table: { ipFamily } });
    expect(rule).toMatch(new RegExp(`-j ${target}$`));
  });

  test('fact 60: affinity is remembered per endpoint, for all frontends and both policies', () => {
    const spec: ServiceSpec = { ports: http, external: 'Local', affinitySeconds: 60 };
    const rules = shortRulesOf({ service: spec, endpoints: [here] });
    const remembered =
      '-m recent --rcheck --seconds 60 --reap --name KUBE-SEP --mask 255.255.255.255 --rsource -j KUBE-SEP';
    expect(ofChain(rules, 'nat KUBE-SVC').slice(1)).toEqual([remembered, '-j KUBE-SEP']);
    expect(ofChain(rules, 'nat KUBE-SVL')).toEqual([remembered, '-j KUBE-SEP']);
    expect(rules.filter((rule) => rule.includes('--set'))).toHaveLength(1);
  });

  test('fact 62: endpoints share by a cascade, in the order of their texts', () => {
    const endpoints = ['10.244.1.9', '10.244.1.10', '10.244.1.11'];
    const rules = ofChain(rulesOf({ endpoints, table: { podCidr: 'none' } }), 'nat KUBE-SVC');
    expect(rules.map((rule) => / -> (\S+)".*?(?:--probability (\S+) )?-j/.exec(rule)?.slice(1))).toEqual([
      ['10.244.1.10:8080', '0.33333333349'],
      ['10.244.1.11:8080', '0.50000000000'],
      ['10.244.1.9:8080', undefined],
    ]);
  });

  test('fact 30: connections to NodePorts on loopback are counted, before the rule that all share', () => {
    const given: Given = { service: { ports: http }, table: { localhostNodePorts: true } };
    const shared = '-p tcp -m tcp --dport 30080 -j KUBE-EXT';
    expect(ofChain(shortRulesOf(given), 'nat KUBE-NODEPORTS')).toEqual([shared]);
    expect(ofChain(shortRulesOf({ ...given, choices: { nfacct: true } }), 'nat KUBE-NODEPORTS')).toEqual([
      '-d 127.0.0.0/8 -p tcp -m tcp --dport 30080 -m nfacct --nfacct-name  localhost_nps_accepted_pkts -j KUBE-EXT',
      shared,
    ]);
    const elsewhere: Given = { service: { ports: http }, choices: { nfacct: true } };
    expect(ofChain(shortRulesOf(elsewhere), 'nat KUBE-NODEPORTS')).toEqual([shared]);
  });

  test('fact 45: on large clusters the rules of endpoints have no comments, all others have', () => {
    const spec: ServiceSpec = { ports: http, loadBalancerIps: [vip], sourceRanges: ['10.0.0.0/8'], affinitySeconds: 5 };
    const without = rulesOf({ service: spec, choices: { comments: false } }).filter(
      (rule) => !rule.includes('--comment'),
    );
    const shape = without.map((rule) => rule.replaceAll(/SEP-[A-Z2-7]{16}/g, 'SEP').split(' -')[0]);
    expect(new Set(shape)).toEqual(new Set(['nat KUBE-SEP', 'nat KUBE-SVC', 'nat KUBE-EXT']));
    expect(ofChain(without, 'nat KUBE-EXT')).toEqual(['-j KUBE-SVC']); // has none anywhere
    expect(without.length).toBe(2 * 2 + 2 * 2 + 1);
  });
});

test.each(['TCP', 'UDP', 'SCTP'] as const)('%s is matched where it comes in and where it is translated', (protocol) => {
  const rules = shortRulesOf({ service: { ports: [{ name: 'a', protocol, port: 7 }] }, endpoints: [here] });
  const name = protocol.toLowerCase();
  expect(rules).toContain(`nat KUBE-SERVICES -d 10.96.0.10/32 -p ${name} -m ${name} --dport 7 -j KUBE-SVC`);
  expect(rules).toContain(`nat KUBE-SEP -p ${name} -m ${name} -j DNAT --to-destination 10.244.1.5:8080`);
});

test('NodePorts that do not answer are refused on NodePort addresses alone', () => {
  const given: Given = {
    service: { ports: http },
    endpoints: [],
    table: { nodePortCidrs: ['192.0.2.1/32', '10.0.0.0/8'] },
  };
  const refusal = '-m addrtype --dst-type LOCAL -m tcp --dport 30080 -j REJECT --reject-with icmp-port-unreachable';
  expect(ofChain(shortRulesOf(given), 'filter KUBE-EXTERNAL-SERVICES')).toEqual([
    `-d 192.0.2.1/32 -p tcp ${refusal}`,
    `-d 10.0.0.0/8 -p tcp ${refusal}`,
  ]);
});

describe('a load-balancer IP with ipMode Router', () => {
  const router: ServiceSpec = { loadBalancerIps: [[vip, 'Router'], '198.51.100.8'], ports: http };
  const entries = (rules: readonly string[]): readonly string[] =>
    rules.filter((rule) => rule.includes(` -d ${vip}/32 `));

  test('leads straight to KUBE-SVL, past the chain of the other external frontends', () => {
    const rules = shortRulesOf({ service: router, table: { routerIpMode: 'localOnly' } });
    expect(entries(rules)).toEqual([`nat KUBE-SERVICES -d ${vip}/32 -p tcp -m tcp --dport 80 -j KUBE-SVL`]);
    expect(ofChain(rules, 'nat KUBE-SVL')).toEqual(['-j KUBE-SEP']);
    expect(ofChain(rules, 'nat KUBE-EXT')).toEqual(['-j KUBE-MARK-MASQ', '-j KUBE-SVC']);
    expect(rules).toContain('nat KUBE-SERVICES -d 198.51.100.8/32 -p tcp -m tcp --dport 80 -j KUBE-EXT');
  });

  test('has a rule for each range of allowed sources, and one that drops the others', () => {
    const spec: ServiceSpec = { ...router, sourceRanges: ['10.0.0.0/8', '203.0.113.0/24'] };
    const rules = shortRulesOf({ service: spec, table: { routerIpMode: 'localOnly' } });
    expect(entries(rules)).toEqual([
      `nat KUBE-SERVICES -s 10.0.0.0/8 -d ${vip}/32 -p tcp -m tcp --dport 80 -j KUBE-SVL`,
      `nat KUBE-SERVICES -s 203.0.113.0/24 -d ${vip}/32 -p tcp -m tcp --dport 80 -j KUBE-SVL`,
      `filter KUBE-PROXY-FIREWALL -d ${vip}/32 -p tcp -m tcp --dport 80 -j DROP`,
    ]);
    expect(rules).toContain('nat KUBE-SERVICES -d 198.51.100.8/32 -p tcp -m tcp --dport 80 -j KUBE-FW');
  });

  test.each([[[there]], [[]]])('has no rule while no endpoint is here: %o', (endpoints) => {
    const spec: ServiceSpec = { ...router, sourceRanges: ['10.0.0.0/8'], external: 'Local' };
    const rules = rulesOf({ service: spec, endpoints, table: { routerIpMode: 'localOnly' } });
    expect(entries(rules)).toEqual([]);
  });

  test('needs no chain but its own when it is the only external frontend', () => {
    const spec: ServiceSpec = { loadBalancerIps: [[vip, 'Router']], sourceRanges: ['10.0.0.0/8'], internal: 'Local' };
    const rules = rulesOf({ service: spec, table: { routerIpMode: 'localOnly' } }).join('\n');
    expect(rules).not.toMatch(/KUBE-(EXT|FW|SVC)/);
    expect(rules).toContain('-j KUBE-SVL');
  });
});

test('each chain stands behind those it jumps to, and something leads to each', () => {
  const table = tableWith({
    service: { ports: http, loadBalancerIps: [vip], sourceRanges: ['10.0.0.0/8'], external: 'Local' },
  });
  const [port] = table.services.values();
  const { chains, entries } = renderService(port!, renderOptions(table, usual));
  const written = new Set(['KUBE-MARK-MASQ', 'DNAT']);
  for (const { name, rules } of chains) {
    for (const rule of rules) {
      const target = /-j (\S+)/.exec(rule)?.[1];
      if (target !== undefined) expect(written, `${name} ${rule}`).toContain(target);
    }
    written.add(name);
  }
  const all = [...chains.flatMap(({ rules }) => rules), ...entries.map(({ rule }) => rule)].join('\n');
  for (const { name } of chains) expect(all).toContain(`-j ${name}`);
  expect(chains.map(({ name }) => name.slice(5, 8))).toEqual(['SEP', 'SEP', 'SVC', 'SVL', 'EXT', 'FW-']);
});
