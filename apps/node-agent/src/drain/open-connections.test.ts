import { createServer, connect } from 'node:net';
import { once } from 'node:events';
import { parseIp, type Protocol } from '@switchyard/core';
import { expect, test } from 'vitest';
import { countConnections, countOpen } from './open-connections.ts';

const text = [
  '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode',
  '   0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1',
  '   1: 0501F40A:1F90 0901F40A:9C40 01 00000000:00000000 00:00000000 00000000     0        0 2',
  '   2: 0501F40A:1F90 0901F40A:9C41 06 00000000:00000000 00:00000000 00000000     0        0 0',
  '   3: 0501F40A:1F90 0901F40A:9C42 08 00000000:00000000 00:00000000 00000000     0        0 3',
  '   4: 0501F40A:9C43 0901F40A:1F90 01 00000000:00000000 00:00000000 00000000     0        0 4',
  '',
].join('\n');

const tcp = (port: number) => new Map<Protocol, ReadonlySet<number>>([['TCP', new Set([port])]]);

test.each([
  [[8080], 2],
  [[8080, 40_003], 3],
  [[80], 0],
])('open connections to the ports %j of /proc/net/tcp: %i', (ports, expected) => {
  expect(countOpen(text, new Set(ports))).toBe(expected);
});

test('connections of this namespace are counted as they come and go', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { readonly port: number };
  const count = async () => (await countConnections({ addresses: [parseIp('127.0.0.1')], ports: tcp(port) })).open.TCP;
  expect(await count()).toBe(0);
  const client = connect(port, '127.0.0.1');
  const [socket] = (await once(server, 'connection')) as [ReturnType<typeof connect>];
  expect(await count()).toBe(1);
  client.destroy();
  socket.destroy();
  server.close();
  await once(server, 'close');
  expect(await count()).toBe(0);
});

test('for an address of no visible process it says what is needed', async () => {
  const { open, why } = await countConnections({ addresses: [parseIp('192.0.2.77')], ports: tcp(80) });
  expect(open).toEqual({});
  expect(why).toMatch(/hostPID and SYS_PTRACE/);
});
