import { describe, expect, test } from 'vitest';
import { kubeProxySave, type LeftService } from '../testing/kube-proxy-save.ts';
import { allButForward, allOfKubeProxy, isKubeProxyChain } from './kube-proxy-chains.ts';
import { parseIptablesSave } from './parse-save.ts';
import { planRemoval, type RemovalWish, type TableRemoval } from './plan-removal.ts';

const cart: LeftService = {
  ipFamily: 'IPv4',
  name: 'cart:http',
  clusterIp: '10.96.0.10',
  port: 80,
  nodePort: 30080,
  protocol: 'tcp',
  endpoint: '10.244.1.1:8080',
};

function plans(text: string, wish: RemovalWish = allOfKubeProxy): ReadonlyMap<string, TableRemoval> {
  const { tables } = parseIptablesSave(text);
  return new Map(tables.map((table) => [table.name, planRemoval(table, wish)]));
}

/** One table with these chains besides the built-in ones, and rules. */
function nat(chains: readonly string[], rules: readonly string[], policy = 'ACCEPT'): string {
  const head = [`:PREROUTING ${policy} [0:0]`, ...chains.map((chain) => `:${chain} - [0:0]`)];
  return ['*nat', ...head, ...rules.map((rule) => `-A ${rule}`), 'COMMIT', ''].join('\n');
}

describe('iptables-save', () => {
  test('is read table by table, with policies, rules and what they lead to', () => {
    const { tables } = parseIptablesSave(kubeProxySave([cart]));
    expect(tables.map(({ name }) => name)).toEqual(['nat', 'filter', 'mangle']);
    const [natTable] = tables;
    expect(natTable?.chains.get('PREROUTING')).toBe('ACCEPT');
    expect(natTable?.chains.get('KUBE-SERVICES')).toBe('-');
    expect(natTable?.rules[0]).toEqual({
      chain: 'PREROUTING',
      spec: '-m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
      target: 'KUBE-SERVICES',
    });
  });

  test.each([
    ['a jump', 'A -p tcp -j B', 'B'],
    ['a jump with options behind it', 'A -j DNAT --to-destination 10.0.0.1:80', 'DNAT'],
    ['a goto', 'A -g B', 'B'],
    ['a rule that only counts', 'A -p tcp', ''],
    ['a comment that looks like a jump', 'A -m comment --comment "x -j KUBE-SERVICES y" -j B', 'B'],
    ['a comment with quotes in it', 'A -m comment --comment "x \\" -j KUBE-SERVICES" -j B', 'B'],
    ['an option that ends in -j', 'A --set-j C -j B', 'B'],
  ])('%s leads where it should', (_, rule, target) => {
    const { tables } = parseIptablesSave(nat([], [rule]));
    expect(tables[0]?.rules[0]?.target).toBe(target);
  });

  test('of rules in user-defined chains only chain and target are kept', () => {
    const { tables } = parseIptablesSave(nat(['MADE'], ['MADE -p tcp -j B', 'PREROUTING -p tcp -j B']));
    expect(tables[0]?.rules).toEqual([
      { chain: 'MADE', spec: '', target: 'B' },
      { chain: 'PREROUTING', spec: '-p tcp -j B', target: 'B' },
    ]);
  });

  test('counters in front of a rule are no part of it', () => {
    const { tables } = parseIptablesSave('*nat\n[12:720] -A PREROUTING -j KUBE-SERVICES\nCOMMIT\n');
    expect(tables[0]?.rules).toEqual([{ chain: 'PREROUTING', spec: '-j KUBE-SERVICES', target: 'KUBE-SERVICES' }]);
  });

  test('tables that iptables cannot read are named', () => {
    expect(parseIptablesSave("# Table `nat' is incompatible, use 'nft' tool.\n")).toEqual({
      tables: [],
      incompatible: ['nat'],
    });
  });
});

describe("kube-proxy's chains", () => {
  test.each([
    'KUBE-SVC-ABCDEFGHIJKLMN23',
    'KUBE-SEP-ABCDEFGHIJKLMN23',
    'KUBE-SERVICES',
    'KUBE-PROXY-CANARY',
    'KUBE-NODE-PORT',
  ])('%s is one', (chain) => expect(isKubeProxyChain(chain)).toBe(true));

  test.each([
    "the kubelet's KUBE-FIREWALL",
    "the kubelet's KUBE-MARK-DROP",
    "the kubelet's KUBE-KUBELET-CANARY",
    "the kubelet's KUBE-IPTABLES-HINT",
    "kube-router's KUBE-ROUTER-SERVICES",
    "kube-router's KUBE-POD-FW-ABCDEFGHIJKLMN23",
    "somebody's KUBE-SVC-SHORT",
  ])('%s is not', (text) => expect(isKubeProxyChain(text.split(' ')[1] ?? '')).toBe(false));
});

describe('a removal', () => {
  test('takes chains, what is in them and the jumps to them, in one transaction; nothing else', () => {
    const plan = plans(kubeProxySave([cart])).get('nat');
    expect(plan?.scripts).toEqual([
      `*nat
:KUBE-SVC-AAQQQQQQQQQQQQQQ - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SEP-AAQQQQQQQQQQQQQQ - [0:0]
:KUBE-PROXY-CANARY - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-EXT-AAQQQQQQQQQQQQQQ - [0:0]
-D PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-D OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-D POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-X KUBE-SVC-AAQQQQQQQQQQQQQQ
-X KUBE-SERVICES
-X KUBE-SEP-AAQQQQQQQQQQQQQQ
-X KUBE-PROXY-CANARY
-X KUBE-POSTROUTING
-X KUBE-NODEPORTS
-X KUBE-MARK-MASQ
-X KUBE-EXT-AAQQQQQQQQQQQQQQ
COMMIT
`,
    ]);
    expect(plan).toMatchObject({ rules: 12, kept: new Map() });
    expect(plan?.jumps).toHaveLength(3);
  });

  test("leaves the kubelet's chains, those of others, and every rule of theirs", () => {
    for (const { scripts } of plans(kubeProxySave([cart])).values()) {
      expect(scripts.join('')).not.toMatch(/KUBE-FIREWALL|MARK-DROP|KUBELET|HINT|SITE-RULES/);
    }
  });

  test('writes nothing where nothing is to go', () => {
    expect(plans(nat(['CNI-X'], ['PREROUTING -j CNI-X'])).get('nat')).toMatchObject({ chains: [], scripts: [] });
  });

  test('in parts first takes what leads to the chains, then each chain after all that lead to it', () => {
    const nat = parseIptablesSave(kubeProxySave([cart])).tables[0]!;
    const { scripts, chains } = planRemoval(nat, allOfKubeProxy, 3);
    expect(scripts.map((script) => script.match(/^-D /gm)?.length)).toEqual([3, undefined, undefined]);
    const left = new Set(chains);
    for (const script of scripts) {
      const part: readonly string[] = script.match(/(?<=^:)\S+/gm) ?? [];
      expect(part.length).toBeLessThanOrEqual(3);
      for (const chain of part) left.delete(chain);
      for (const { chain, target } of nat.rules) if (part.includes(target)) expect(left).not.toContain(chain);
    }
    expect(left.size).toBe(0);
  });

  test('deletes a jump as often as it is there', () => {
    const jump = 'PREROUTING -j KUBE-SERVICES';
    expect(
      plans(nat(['KUBE-SERVICES'], [jump, jump]))
        .get('nat')
        ?.scripts[0]?.match(/-D PREROUTING/g),
    ).toHaveLength(2);
  });

  test("keeps a chain that another program's chain leads to, with all it leads to, and says why", () => {
    const chains = ['KUBE-MARK-MASQ', 'KUBE-SERVICES', 'KUBE-NODEPORTS', 'CNI-HOSTPORT-DNAT'];
    const plan = plans(
      nat(chains, [
        'PREROUTING -j KUBE-SERVICES',
        'KUBE-SERVICES -j KUBE-MARK-MASQ',
        'KUBE-MARK-MASQ -j KUBE-NODEPORTS',
        'CNI-HOSTPORT-DNAT -j KUBE-MARK-MASQ',
      ]),
    ).get('nat');
    expect(plan?.chains).toEqual(['KUBE-SERVICES']);
    expect(plan?.kept).toEqual(
      new Map([
        ['KUBE-MARK-MASQ', 'a rule of chain CNI-HOSTPORT-DNAT leads to it'],
        ['KUBE-NODEPORTS', 'a rule of chain KUBE-MARK-MASQ leads to it'],
      ]),
    );
  });

  test('keeps KUBE-FORWARD in a take-over where nothing else would let Service traffic pass', () => {
    const filter = kubeProxySave([cart]).replace(':FORWARD ACCEPT [0:0]', ':FORWARD DROP [0:0]');
    const kept = new Map([['KUBE-FORWARD', 'the policy of FORWARD is DROP, and it lets Service traffic pass']]);
    expect(plans(filter, allButForward).get('filter')).toMatchObject({ kept });
    expect(plans(filter, allButForward).get('filter')?.scripts[0]).not.toContain('KUBE-FORWARD');
    expect(plans(filter, allOfKubeProxy).get('filter')?.scripts[0]).toContain('-X KUBE-FORWARD');
    expect(plans(kubeProxySave([cart]), allButForward).get('filter')?.scripts[0]).toContain('-X KUBE-FORWARD');
  });
});
