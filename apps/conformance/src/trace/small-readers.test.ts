import { parseIp } from '@switchyard/core';
import { expect, test } from 'vitest';
import { readConntrack, counterDifference } from './read-trace.ts';
import { hasTraceListener, traceTableText } from './trace-monitor.ts';

test('a conntrack entry has both directions of the flow', () => {
  const line =
    'ipv4     2 tcp      6 9 CLOSE src=172.18.0.100 dst=172.18.0.11 sport=38376 dport=30080 src=10.244.2.2 dst=172.18.0.11 sport=8080 dport=6415 [ASSURED] mark=0 zone=0 use=2';
  expect(readConntrack(`${line}\n\n`)).toEqual([
    {
      protocol: 'tcp',
      source: '172.18.0.100',
      sourcePort: 38376,
      destination: '172.18.0.11',
      destinationPort: 30080,
      text: '172.18.0.100:38376 -> 172.18.0.11:30080 tcp, answered as 10.244.2.2:8080 -> 172.18.0.11:6415 (CLOSE [ASSURED])',
    },
  ]);
});

test('IPv6 addresses of conntrack are written as everywhere', () => {
  const zeros = '0000:0000:0000:0000';
  const line = `ipv6     10 udp      17 29 src=fd00:0010:0096:0000:${zeros} dst=fd00:0000:0000:0000:0000:0000:0000:0002 sport=1 dport=53 [UNREPLIED] src=fd00:0000:0000:0000:0000:0000:0000:0002 dst=fd00:0010:0096:0000:${zeros} sport=53 dport=1 mark=0`;
  expect(readConntrack(line)[0]).toMatchObject({ source: 'fd00:10:96::', destination: 'fd00::2', protocol: 'udp' });
});

test('only rules that matched more packets are listed, equal rules separately', () => {
  const rule = '-A KUBE-SERVICES -d 10.96.0.1/32 -j KUBE-SVC-A';
  const save = (first: number, second: number, third: number): string =>
    `*nat\n:KUBE-SERVICES - [0:0]\n[${first}:60] ${rule}\n[${second}:60] ${rule}\n[${third}:0] -A KUBE-SVC-A -j KUBE-SEP-B\nCOMMIT\n`;
  expect(counterDifference(save(1, 4, 0), save(1, 5, 2))).toEqual([
    'nat/KUBE-SERVICES  -d 10.96.0.1/32 -j KUBE-SVC-A  +1',
    'nat/KUBE-SVC-A  -j KUBE-SEP-B  +2',
  ]);
});

test('rules that were not there before count from nothing', () => {
  expect(counterDifference('', '*filter\n[3:1] -A INPUT -j DROP\nCOMMIT\n')).toEqual(['filter/INPUT  -j DROP  +3']);
});

test.each([
  ['in the group of traces', '0000000000000000 12  7191  00000100 0  0  0  2  0  9', true],
  ['in another group', '0000000000000000 12  7191  00000040 0  0  0  2  0  9', false],
  ['of another protocol', '0000000000000000 0  7191  00000100 0  0  0  2  0  9', false],
])('a netlink socket %s', (_what, line, expected) => {
  expect(hasTraceListener(`sk  Eth Pid  Groups  Rmem\n${line}\n`)).toBe(expected);
});

test('without a known sender everything that the node begins is marked, of this protocol and family only', () => {
  const text = traceTableText({ family: 'IPv6', protocol: 'UDP', address: parseIp('fd00:10:96::1'), port: 53 });
  const output = /chain early-output \{([^}]*)\}/
    .exec(text)?.[1]
    ?.trim()
    .split('\n')
    .map((line) => line.trim());
  expect(output).toEqual([
    'type filter hook output priority -500;',
    'ip6 daddr fd00:10:96::1 udp dport 53  meta nftrace set 1',
    'meta nfproto ipv6 meta l4proto udp  meta nftrace set 1',
  ]);
});
