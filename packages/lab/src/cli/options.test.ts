import { ipFamilies } from '@switchyard/core';
import { expect, test } from 'vitest';
import { parseLabCommand } from './options.ts';

const up = { name: 'demo', nodes: 3, ipFamilies, agents: false, proxyMode: 'nftables' };

test.each([
  { line: '', command: { kind: 'help' } },
  { line: '--help', command: { kind: 'help' } },
  { line: 'up --help', command: { kind: 'help' } },
  { line: 'exec client -h', command: { kind: 'help' } },
  {
    line: 'exec client -- ls --help',
    command: { kind: 'exec', name: 'demo', host: 'client', command: ['ls', '--help'] },
  },
  { line: 'up', command: { kind: 'up', options: up } },
  { line: 'up --nodes 1 --name x', command: { kind: 'up', options: { ...up, nodes: 1, name: 'x' } } },
  {
    line: 'up --ip-family ipv6 --agents --proxy-mode ebpf',
    command: { kind: 'up', options: { ...up, ipFamilies: ['IPv6'], agents: true, proxyMode: 'ebpf' } },
  },
  { line: 'down', command: { kind: 'down', names: ['demo'] } },
  { line: 'down --name x', command: { kind: 'down', names: ['x'] } },
  { line: 'down --all', command: { kind: 'down', names: 'all' } },
  { line: 'down --dead', command: { kind: 'down', names: 'dead' } },
  { line: 'list', command: { kind: 'list' } },
  { line: 'status --name x', command: { kind: 'status', name: 'x' } },
  { line: 'exec client', command: { kind: 'exec', name: 'demo', host: 'client', command: ['sh'] } },
  {
    line: 'exec client -- ip -br addr',
    command: { kind: 'exec', name: 'demo', host: 'client', command: ['ip', '-br', 'addr'] },
  },
  {
    line: 'exec --name x node1 -- ls --name y',
    command: { kind: 'exec', name: 'x', host: 'node1', command: ['ls', '--name', 'y'] },
  },
  {
    line: 'probe --count 5 client http 172.18.0.11 30080',
    command: { kind: 'probe', name: 'demo', host: 'client', words: ['http', '172.18.0.11', '30080', '5'] },
  },
])('./dev lab $line', ({ line, command }) => {
  expect(parseLabCommand(line.split(' ').filter(Boolean))).toEqual(command);
});

test.each([
  { line: 'fly', says: /unknown command "fly"/ },
  { line: 'up --nodes many', says: /--nodes is a number, not many/ },
  { line: 'up --ip-family v4', says: /--ip-family is ipv4, ipv6 or dual, not v4/ },
  { line: 'up --proxy-mode ipvs', says: /one of nftables, iptables, ebpf, not ipvs/ },
  { line: 'up extra', says: /extra/ },
  { line: 'up --wings', says: /--wings/ },
  { line: 'down --all --name x', says: /use only one of/ },
  { line: 'down --dead --all', says: /use only one of/ },
  { line: 'exec', says: /the host is missing/ },
  { line: 'probe client', says: /use probe HOST/ },
  { line: 'probe client icmp 172.18.0.11 80', says: /use probe HOST/ },
  { line: 'probe client tcp nowhere 80', says: /use probe HOST/ },
  { line: 'probe --count 0 client tcp 172.18.0.11 80', says: /use probe HOST/ },
  { line: 'exec client ls -- ls', says: /unexpected ls/ },
  { line: 'list --name one', says: /--name.*see \.\/dev lab help/ },
])('./dev lab $line is refused', ({ line, says }) => {
  expect(() => parseLabCommand(line.split(' '))).toThrow(says);
});
