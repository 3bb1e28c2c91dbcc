import { createServer, get, type Server } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parseIp } from '../ip/address.ts';
import { parsePort } from '../ip/port.ts';
import { jsonAnswer } from './http-answer.ts';
import { type HttpHandler, httpListener, type ListenTarget } from './http-listener.ts';

const loopback = { ipFamily: 'IPv4', address: parseIp('127.0.0.1') } as const;

async function listen(
  target: Omit<ListenTarget, 'port'>,
  port: number,
  handler: HttpHandler,
): Promise<AsyncDisposable> {
  const socket = await httpListener.listen({ ...target, port: parsePort(port) }, handler);
  onTestFinished(() => socket[Symbol.asyncDispose]());
  return socket;
}

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

function fetchFrom(
  port: number,
  path: string,
  host = '127.0.0.1',
): Promise<{ status: number; body: string; weight: unknown }> {
  return new Promise((resolve, reject) => {
    get({ host, port, path, agent: false }, (response) => {
      let body = '';
      response.on('data', (chunk) => (body += String(chunk)));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body, weight: response.headers['x-weight'] }),
      );
    }).on('error', reject);
  });
}

describe('httpListener', () => {
  test('answers with status, headers and body, by path', async () => {
    const port = await freePort();
    await listen(loopback, port, ({ path }) => jsonAnswer(path === '/good' ? 200 : 503, { path }, { 'X-Weight': '3' }));
    expect(await fetchFrom(port, '/good')).toEqual({ status: 200, body: '{"path":"/good"}\n', weight: '3' });
    expect(await fetchFrom(port, '/bad')).toEqual({ status: 503, body: '{"path":"/bad"}\n', weight: '3' });
  });

  test('a port in use is an error that names it', async () => {
    const port = await freePort();
    await listen(loopback, port, () => jsonAnswer(200, {}));
    await expect(listen(loopback, port, () => jsonAnswer(200, {}))).rejects.toMatchObject({
      name: 'HostError',
      code: 'host.listen',
      message: expect.stringContaining(`127.0.0.1:${port}`) as string,
    });
  });

  test('both families can have the same port everywhere', async () => {
    const port = await freePort();
    await listen({ ipFamily: 'IPv4', address: 'any' }, port, () => jsonAnswer(200, { family: 4 }));
    await listen({ ipFamily: 'IPv6', address: 'any' }, port, () => jsonAnswer(200, { family: 6 }));
    expect((await fetchFrom(port, '/', '127.0.0.1')).body).toContain('4');
    expect((await fetchFrom(port, '/', '::1')).body).toContain('6');
  });

  test('one socket can serve both families', async () => {
    const port = await freePort();
    await listen({ ipFamily: 'both', address: 'any' }, port, () => jsonAnswer(200, {}));
    expect((await fetchFrom(port, '/', '127.0.0.1')).status).toBe(200);
    expect((await fetchFrom(port, '/', '::1')).status).toBe(200);
  });

  test('disposing cuts connections that are open, and frees the port', async () => {
    const port = await freePort();
    const socket = await listen(loopback, port, () => jsonAnswer(200, {}));
    const client = connect(port, '127.0.0.1');
    await new Promise((resolve) => client.once('connect', resolve));
    const closed = new Promise((resolve) => client.once('close', resolve));
    client.on('error', () => undefined);
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await new Promise((resolve) => client.once('data', resolve));
    await socket[Symbol.asyncDispose]();
    await closed;
    const server: Server = createServer();
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
    server.close();
  });

  test('a request that is no HTTP does not hurt', async () => {
    const port = await freePort();
    await listen(loopback, port, () => jsonAnswer(200, {}));
    const client = connect(port, '127.0.0.1');
    client.on('error', () => undefined);
    client.resume();
    client.end('nonsense\r\n\r\n');
    await new Promise((resolve) => client.once('close', resolve));
    expect((await fetchFrom(port, '/')).status).toBe(200);
  });
});
