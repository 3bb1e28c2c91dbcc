import { expect, test } from 'vitest';
import { readTrace } from './read-trace.ts';

const syn = 'ip dscp cs0 ip ecn not-ect ip ttl 64 ip id 1 ip protocol tcp ip length 60 tcp sport 4000 tcp dport';
const to = (address: string, port: number): string =>
  `ether saddr 02:00:00:00:00:01 ip saddr 172.18.0.100 ip daddr ${address} ${syn} ${port} tcp flags == syn tcp window 64240`;

const forwarded = `
trace id 76322819 inet switchyard-trace early-prerouting packet: iif "eth0" ${to('172.18.0.11', 30080)}
trace id 76322819 inet switchyard-trace early-prerouting unknown rule handle 8 (verdict continue)
trace id 76322819 inet switchyard-trace early-prerouting policy accept
trace id 76322819 ip nat PREROUTING packet: iif "eth0" ${to('172.18.0.11', 30080)}
trace id 76322819 ip nat PREROUTING rule  counter packets 0 bytes 0 jump KUBE-SERVICES (verdict jump KUBE-SERVICES)
trace id 76322819 ip nat KUBE-SEP-A rule meta l4proto tcp   counter packets 0 bytes 0 dnat to 10.244.2.2:8080 (verdict accept)
trace id 76322819 inet switchyard-trace at-prerouting packet: iif "eth0" ${to('10.244.2.2', 8080)}
trace id 76322819 inet switchyard-trace at-prerouting policy accept meta mark 0x00004000
trace id 76322819 ip filter FORWARD packet: iif "eth0" oif "eth1" ${to('10.244.2.2', 8080)}
trace id 76322819 ip filter FORWARD unknown rule handle 12 (verdict continue)
trace id 76322819 inet switchyard-trace at-forward packet: iif "eth0" oif "eth1" ${to('10.244.2.2', 8080)}
trace id 76322819 ip nat POSTROUTING packet: iif "eth0" oif "eth1" ${to('10.244.2.2', 8080)}
trace id 76322819 ip nat POSTROUTING rule  counter packets 0 bytes 0 masquerade (verdict accept)
trace id 76322819 inet switchyard-trace at-postrouting packet: iif "eth0" oif "eth1" ${to('10.244.2.2', 8080)}
`;

test('a forwarded packet is listed by stations, and rules with their hook, without counters and our own rules', () => {
  const [path, ...others] = readTrace(forwarded);
  expect(others).toEqual([]);
  expect(path?.end).toBe('left');
  expect(path?.head).toMatchObject({ destination: '172.18.0.11', destinationPort: 30080, sourcePort: 4000 });
  expect(path?.tail).toMatchObject({ destination: '10.244.2.2', outgoing: 'eth1' });
  expect(path?.lines).toEqual([
    'comes in by eth0: 172.18.0.100:4000 -> 172.18.0.11:30080 tcp',
    'prerouting  ip nat/PREROUTING  jump KUBE-SERVICES  => jump KUBE-SERVICES',
    'prerouting  ip nat/KUBE-SEP-A  meta l4proto tcp dnat to 10.244.2.2:8080  => accept',
    'after prerouting by eth0: 172.18.0.100:4000 -> 10.244.2.2:8080 tcp  (changed)',
    'forward  ip filter/FORWARD  rule handle 12  => continue',
    'is forwarded from eth0 to eth1: 172.18.0.100:4000 -> 10.244.2.2:8080 tcp',
    'postrouting  ip nat/POSTROUTING  masquerade  => accept',
    'leaves by eth1: 172.18.0.100:4000 -> 10.244.2.2:8080 tcp',
  ]);
});

test('a packet that a policy drops ends there', () => {
  const [path] = readTrace(`
trace id 1 inet switchyard-trace early-output packet: oif "eth0" ip6 saddr fd00::1 ip6 daddr fd00::2 ip6 nexthdr udp ip6 length 20 udp sport 5 udp dport 53
trace id 1 inet filter output packet: oif "eth0" ip6 saddr fd00::1 ip6 daddr fd00::2 ip6 nexthdr udp ip6 length 20 udp sport 5 udp dport 53
trace id 1 inet filter output policy drop
`);
  expect(path?.end).toBe('gone');
  expect(path?.lines).toEqual([
    'is sent by the node: [fd00::1]:5 -> [fd00::2]:53 udp',
    'output  inet filter/output  policy drop',
  ]);
});

test('packets are distinguished by their number, and an answer begins where it was noticed', () => {
  const head = 'ip saddr 10.244.2.2 ip daddr 172.18.0.100 ip protocol icmp';
  const paths = readTrace(`${forwarded}
trace id 2 inet switchyard-trace reply-prerouting packet: iif "eth1" ${head}
trace id 2 inet switchyard-trace at-input packet: iif "eth1" ${head}
`);
  expect(paths.map(({ id, end }) => [id, end])).toEqual([
    ['76322819', 'left'],
    ['2', 'received'],
  ]);
  expect(paths[1]?.lines).toEqual([
    'comes in by eth1: 10.244.2.2 -> 172.18.0.100 icmp',
    'is for the node: 10.244.2.2 -> 172.18.0.100 icmp',
  ]);
});

test('what goes on under another number goes on', () => {
  const text = forwarded.replaceAll(/(at-forward|POSTROUTING|at-postrouting|FORWARD)/g, '@$1');
  const renumbered = text.replaceAll(/trace id 76322819 (?=.*@)/g, 'trace id 5 ').replaceAll('@', '');
  expect(renumbered).toContain('trace id 5 ');
  const [path, ...others] = readTrace(renumbered);
  expect(others).toEqual([]);
  expect(path).toMatchObject({ id: '76322819', end: 'left' });
  expect(path?.lines).toEqual(readTrace(forwarded)[0]?.lines);
});

test.each([
  ['nothing', ''],
  ['what is no trace', 'add rule inet a b accept\n# new generation 7 by process 1 (nft)\n'],
  ['a rule without its packet', 'trace id 9 ip nat PREROUTING rule accept (verdict accept)\n'],
])('%s is no path', (_what, text) => {
  expect(readTrace(text)).toEqual([]);
});
