import { parseIp, parsePort } from '@switchyard/core';
import { expect, test } from 'vitest';
import type { HaproxyServer } from './haproxy-servers.ts';
import { keepServerStates, upServers } from './server-state.ts';

const header =
  '# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight srv_time_since_last_change srv_check_status srv_check_result srv_check_health srv_check_state srv_agent_state bk_f_forced_id srv_f_forced_id srv_fqdn srv_port srvrecord srv_use_ssl srv_check_port srv_check_addr srv_agent_addr srv_agent_port';
const line = (server: string, address: string, port = 30080, checkPort = 32080, agentPort = '32080'): string =>
  `3 a:b:80:ipv4 1 ${server} ${address} 0 0 1 1 3 8 2 0 6 0 0 0 - ${port} - 0 ${checkPort} - - ${agentPort}`;
const server = (name: string, address: string): HaproxyServer => ({
  backend: 'a:b:80:ipv4',
  name,
  address: parseIp(address),
  port: parsePort(30080),
  check: { address: parseIp(address), port: parsePort(32080), path: '/healthz' },
  isChecked: true,
  draining: 'no',
  isBackup: false,
  isWeighted: false,
  maxHealth: 3,
});

test('keeps the servers that stay as they are, without their agent port', () => {
  const dump = `1\n${header}\n${line('node1', '192.0.2.1')}\n${line('node2', '2001:db8::2')}\n\n`;
  const kept = keepServerStates(dump, [server('node1', '192.0.2.1'), server('node2', '2001:db8::2')]);
  expect(kept).toBe(
    `1\n${header}\n${line('node1', '192.0.2.1', 30080, 32080, '-')}\n${line('node2', '2001:db8::2', 30080, 32080, '-')}\n`,
  );
});

test.each([
  ['that has gone', line('node9', '192.0.2.1')],
  ['with another address', line('node1', '192.0.2.7')],
  ['with another port', line('node1', '192.0.2.1', 30081)],
  ['that is checked on another port', line('node1', '192.0.2.1', 30080, 10256)],
  ['that is checked on another address', line('node1', '192.0.2.1').replace('32080 - -', '32080 192.0.2.9 -')],
])('forgets a server %s', (_, text) => {
  expect(keepServerStates(`1\n${header}\n${text}\n`, [server('node1', '192.0.2.1')])).toBe(`1\n${header}\n`);
});

test('forgets a server that is no longer checked: DOWN, it would never return', () => {
  const dump = `1\n${header}\n${line('node1', '192.0.2.1')}\n`;
  const unchecked = { ...server('node1', '192.0.2.1'), isChecked: false };
  expect(keepServerStates(dump, [unchecked])).toBe(`1\n${header}\n`);
});

test('health beyond what a lowered fall allows is cut: it would have to fail away first', () => {
  const healthy = line('node1', '192.0.2.1').replace(' 3 8 2 0 6 ', ' 3 8 2 5 6 ');
  const kept = keepServerStates(`1\n${header}\n${healthy}\n`, [server('node1', '192.0.2.1')]);
  expect(kept).toContain(' 3 8 2 3 6 ');
});

test.each([
  ['that has an endpoint again is DOWN until a check says that its node knows', 'no', ' 0 0 1 0 3 8 2 0 6 '],
  ['that still has none keeps its health', 'empty', ' 2 0 1 0 3 8 2 2 6 '],
] as const)('a server without an endpoint %s', (_, draining, columns) => {
  const dump = `1\n${header}\n${line('node1', '192.0.2.1').replace('0 0 1 1 3 8 2 0 6', '2 0 1 0 3 8 2 2 6')}\n`;
  expect(keepServerStates(dump, [{ ...server('node1', '192.0.2.1'), isWeighted: true, draining }])).toContain(columns);
});

test('upServers names the servers that HAProxy uses', () => {
  const up = line('node2', '192.0.2.2').replace('192.0.2.2 0 0', '192.0.2.2 2 0');
  expect(upServers(`1\n${header}\n${line('node1', '192.0.2.1')}\n${up}\n`)).toEqual(new Set(['a:b:80:ipv4/node2']));
});

test.each([
  [true, '0 0 3 1 3'],
  [false, '0 0 1 1 3'],
])('the weight of a server is carried over only where it is weighed: %s', (isWeighted, columns) => {
  const dump = `1\n${header}\n${line('node1', '192.0.2.1').replace('0 0 1 1 3', '0 0 3 1 3')}\n`;
  expect(keepServerStates(dump, [{ ...server('node1', '192.0.2.1'), isWeighted }])).toContain(columns);
});
