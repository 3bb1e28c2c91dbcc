import { parseIp } from '@switchyard/core';
import { expect, test } from 'vitest';
import { ListenOverflows, parseListeners } from './listen-overflows.ts';
import { parseFibTrie, parseIfInet6, type ProcessNamespace } from './namespaces.ts';

const head = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt';
const tcp = [
  head,
  '   0: 00000000:1F90 00000000:0000 0A 00000000:00000002 00:00000000 00000000     0        0 1',
  '   1: 0301F40A:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 2',
  '   2: 0301F40A:1F90 0201F40A:8000 01 00000000:00000000 00:00000000 00000000     0        0 3',
].join('\n');
const tcp6 = `${head}\n   0: 000000FD44021000010000000300000000:0050 0:0000 0A 00000000:00000001 00:0 0 0 0 4`;
const netstat = (overflows: number): string =>
  `TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 5 ${overflows} 9\nIpExt: InNoRoutes\nIpExt: 1\n`;
const pod: ProcessNamespace = {
  inode: 7,
  cookie: 70,
  isLinked: true,
  folder: '/proc/42',
  addresses: new Set([parseIp('10.244.1.3')]),
};

test('listening sockets have their address, port and accept queue', () => {
  expect(parseListeners(tcp)).toEqual([
    { address: 'any', port: 8080, queue: 2 },
    { address: '10.244.1.3', port: 8081, queue: 0 },
  ]);
});

test('an IPv6 address is read word by word', () => {
  const text = tcp6.replace('000000FD44021000010000000300000000', '0000FD00' + '0'.repeat(16) + '03000000');
  expect(parseListeners(text)).toEqual([{ address: 'fd::3', port: 80, queue: 1 }]);
});

test('new overflows belong to the fullest listener, at each address of the namespace', () => {
  let overflows = 3;
  const files: Record<string, () => string> = {
    '/proc/42/net/netstat': () => netstat(overflows),
    '/proc/42/net/tcp': () => tcp,
  };
  const reader = new ListenOverflows((path) => files[path]?.());
  expect(reader.read([pod])).toEqual([]);
  expect(reader.read([pod])).toEqual([]);
  overflows = 8;
  expect(reader.read([pod])).toEqual([{ inode: 7, count: 5, listeners: [{ address: '10.244.1.3', port: 8080 }] }]);
  expect(reader.read([pod])).toEqual([]);
});

test('a namespace that comes later, or that cannot be read, has none', () => {
  const reader = new ListenOverflows(() => undefined);
  expect(reader.read([])).toEqual([]);
  expect(reader.read([pod])).toEqual([]);
});

test('local addresses of a namespace are read from its files', () => {
  const trie =
    'Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.244.1.3\n        /32 host LOCAL\n     |-- 10.244.1.0\n        /24 link UNICAST\n';
  expect(parseFibTrie(trie)).toEqual(['10.244.1.3']);
  expect(parseIfInet6('fd000010024400010000000000000003 02 80 00 80     eth0\n')).toEqual(['fd00:10:244:1::3']);
});
