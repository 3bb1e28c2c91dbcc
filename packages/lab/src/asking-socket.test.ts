import { createSocket } from 'node:dgram';
import { expect, test } from 'vitest';
import { openAskingSocket } from './kept-connections.ts';

test('a socket whose source address does not exist resolves, and the first question fails with the reason', async () => {
  const socket = await openAskingSocket({ protocol: 'udp', address: '127.0.0.1', port: 9, source: '192.0.2.1' });
  expect(await socket.ask(100)).toEqual({ status: 'unreachable', code: 'EADDRNOTAVAIL' });
  socket.close();
});

test('one question, one answer; silence is a timeout', async () => {
  const server = createSocket('udp4').on('message', (_, { port }) => server.send('{}', port, '127.0.0.1'));
  await new Promise<void>((resolve) => server.bind(0, '127.0.0.1', resolve));
  const socket = await openAskingSocket({ protocol: 'udp', address: '127.0.0.1', port: server.address().port });
  expect(await socket.ask(2_000)).toMatchObject({ status: 'answered' });
  server.removeAllListeners('message');
  expect(await socket.ask(30)).toEqual({ status: 'timeout' });
  socket.close();
  server.close();
});

test('a socket that is not connected hears only whom it asked', async () => {
  const other = createSocket('udp4');
  const server = createSocket('udp4').on('message', (_, { port }) => other.send('{}', port, '127.0.0.1'));
  await new Promise<void>((resolve) => server.bind(0, '127.0.0.1', resolve));
  const request = { protocol: 'udp', address: '127.0.0.1', port: server.address().port, isUnconnected: true } as const;
  const socket = await openAskingSocket(request);
  expect(await socket.ask(50)).toEqual({ status: 'timeout' });
  server.on('message', (_, { port }) => server.send('{}', port, '127.0.0.1'));
  expect(await socket.ask(2_000)).toMatchObject({ status: 'answered' });
  socket.close();
  server.close();
  other.close();
});
