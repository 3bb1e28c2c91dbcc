import type { IpFamily, Random } from '@switchyard/core';

/** Texts for `iptables-restore --noflush` as a drunken agent would write them: mostly right, each with its own mistakes. */
export function randomRestore(ipFamily: IpFamily, random: Random): string {
  const one = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T; // no list here is empty
  const tables = random() < 0.3 ? [one(tableNames), one(tableNames)] : [one(tableNames)];
  return tables.map((table) => tableText(table, ipFamily, { one, random })).join('');
}

interface Dice {
  readonly one: <T>(list: readonly T[]) => T;
  readonly random: Random;
}

const tableNames = ['nat', 'nat', 'filter', 'mangle'] as const;
type TableName = (typeof tableNames)[number];

const kernelChains: Readonly<Record<TableName, readonly string[]>> = {
  nat: ['PREROUTING', 'OUTPUT', 'POSTROUTING'],
  filter: ['INPUT', 'FORWARD', 'OUTPUT'],
  mangle: ['PREROUTING', 'FORWARD'],
};

const chains = ['KUBE-SERVICES', 'KUBE-SVC-A', 'KUBE-SVC-B', 'KUBE-SEP-A', 'KUBE-SEP-B', 'MINE'];

function tableText(table: TableName, ipFamily: IpFamily, { one, random }: Dice): string {
  const lines = [`*${table}`];
  const declared = chains.filter(() => random() < 0.5);
  lines.push(...declared.map((chain) => `:${chain} - [0:0]`));
  if (random() < 0.1) lines.push(`:${one(kernelChains[table])} ${one(['ACCEPT', 'DROP', '-', 'WRONG'])} [0:0]`);
  for (let left = Math.floor(random() * 8); left > 0; left--) {
    lines.push(random() < 0.06 ? one(strayLines) : command({ table, ipFamily, declared }, { one, random }));
  }
  if (random() < 0.97) lines.push('COMMIT');
  return `${lines.join('\n')}\n`;
}

const strayLines = [
  '',
  '# a comment',
  '-N MINE',
  '-X NOBODY',
  '-F NOBODY',
  'garbage',
  '-A NOBODY -j ACCEPT',
  '-N KUBE-SVC-THAT-HAS-A-NAME-BEYOND-ALL-BOUNDS',
];

/** Chains lead to those behind them only: of several loops the kernel finds some first. POSTROUTING leads nowhere. */
function isForward(chain: string, rule: string): boolean {
  const target = / -[jg] (\S+)/.exec(` ${rule}`)?.[1] ?? '';
  if (chain === 'POSTROUTING') return !chains.includes(target) && target !== 'DNAT';
  return !chains.includes(target) || chains.indexOf(target) > chains.indexOf(chain);
}

interface Place {
  readonly table: TableName;
  readonly ipFamily: IpFamily;
  /** Chains that this text empties or makes. */
  readonly declared: readonly string[];
}

function command({ table, ipFamily, declared }: Place, { one, random }: Dice): string {
  const chain = random() < 0.3 ? one(kernelChains[table]) : one(chains);
  const fitting = rulesOf(table, ipFamily).filter((one) => isForward(chain, one));
  const rule = random() < 0.06 ? one(wrongRules) : one(fitting);
  const kind = random();
  // Of a chain that the same text has emptied, the nft variant still counts the old rules: no program does this.
  if (kind < 0.6 || declared.includes(chain)) return `-A ${chain} ${rule}`;
  if (kind < 0.75) return `-I ${chain} ${one(['', '1 ', '2 ', '4 '])}${rule}`;
  if (kind < 0.87) return `-D ${chain} ${rule}`;
  return kind < 0.9 ? `-F ${chain}` : `-X ${one(chains)}`;
}

const wrongRules = [
  '-p tcp -m nonsense --dport 80 -j ACCEPT',
  '-p tcp --nonsense 80 -j ACCEPT',
  '-p tcp -j NOBODY',
  '-p nonsense -j ACCEPT',
  '-p tcp -m udp --dport 80 -j ACCEPT',
  '-p tcp -m tcp --dport 99999 -j ACCEPT',
  '--dport 80 -j ACCEPT',
  '-s 10.0.0.0.0 -j ACCEPT',
  '-s fd00::1 -d 10.0.0.1 -j ACCEPT',
  'stray -j ACCEPT',
  '-m statistic --mode random --probability 1.5 -j ACCEPT',
  '-m conntrack --ctstate FRESH -j ACCEPT',
  '-m addrtype --dst-type HOME -j ACCEPT',
  '-m nfacct --nfacct-name nobody -j ACCEPT',
  '-j MASQUERADE --nonsense',
  '-j DNAT',
];

/** Ours, kube-proxy's in its own spelling, and what others may write. */
function rulesOf(table: TableName, ipFamily: IpFamily): readonly string[] {
  const [vip, pod, range] =
    ipFamily === 'IPv4'
      ? ['10.96.0.10', '10.244.1.5', '10.244.0.0/16']
      : ['fd00:10:96::10', 'fd00:10:244:1::5', 'fd00:10:244::/48'];
  const place = ipFamily === 'IPv4' ? `${pod}:8080` : `[${pod}]:8080`;
  const everywhere = [
    '-j KUBE-SVC-A',
    '-g KUBE-SVC-B',
    '-m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
    `-m comment --comment "shop/cart:http cluster IP" -m tcp -p tcp -d ${vip} --dport 80 -j KUBE-SVC-A`,
    `-d ${vip}/${ipFamily === 'IPv4' ? 32 : 128} -p udp -m udp --dport 53 -j KUBE-SVC-B`,
    `! -s ${range} -d ${vip} -p sctp --dport 7 --sport 9 -j MARK --or-mark 0x4000`,
    `-m comment --comment shop/cart -s ${pod} -j KUBE-SEP-A`,
    '-m comment --comment "it\'s \\"quoted\\" \\\\ and long" -j RETURN',
    '-m comment --comment word',
    '-m statistic --mode random --probability 0.3333333333 -j KUBE-SEP-A',
    '-m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-B',
    '-m recent --name KUBE-SEP-A --rcheck --seconds 600 --reap -j KUBE-SEP-A',
    '-m recent --name KUBE-SEP-A --set',
    '-m addrtype --dst-type LOCAL -j KUBE-SERVICES',
    '-m addrtype ! --src-type LOCAL --dst-type UNICAST -j ACCEPT',
    '-m mark ! --mark 0x4000/0x4000 -j RETURN',
    '-m mark --mark 7 -j DROP',
    '-m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT',
    '-m conntrack ! --ctstate NEW,INVALID,DNAT -j DROP',
    '-j MARK --xor-mark 0x4000',
    '-j MARK --set-mark 0x1/0xff',
    '-m conntrack --ctstate INVALID -m nfacct --nfacct-name known -j RETURN',
    '-i cni0 -j ACCEPT',
    '! -i veth+ -p tcp -j ACCEPT',
    `-s ${ipFamily === 'IPv4' ? '0.0.0.0/0' : '::/0'} -j RETURN`,
    `! -d ${ipFamily === 'IPv4' ? '127.3.2.1/8' : 'fe80::1/10'} -j DROP`,
    '-p 17 -j ACCEPT',
    '-p all -j ACCEPT',
  ];
  if (table === 'nat')
    return [
      ...everywhere,
      `-p tcp -m tcp -j DNAT --to-destination ${place}`,
      `-p udp -j DNAT --to-destination ${place}`,
    ];
  return table === 'filter' ? [...everywhere, '-j REJECT', '-p tcp -j REJECT'] : everywhere;
}
