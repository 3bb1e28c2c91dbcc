import { Agent, createServer, get, type IncomingMessage, request, type Server } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parseIp } from '../model/ip/address.ts';
import { parsePort } from '../model/ip/port.ts';
import { freePort } from '../testing/free-port.ts';
import { millis, seconds } from '../base/time.ts';
import { jsonAnswer, textAnswer, type HttpHandler, type HttpReply } from './http-answer.ts';
import { createHttpListener, type HttpLimits, type HttpSocket, type ListenTarget } from './http-listener.ts';

const loopback = { ipFamily: 'IPv4', address: parseIp('127.0.0.1') } as const;

async function listen(
  target: Omit<ListenTarget, 'port'>,
  port: number,
  handler: HttpHandler,
  listener = createHttpListener(),
): Promise<HttpSocket> {
  const socket = await listener.listen({ ...target, port: parsePort(port) }, handler);
  onTestFinished(() => socket[Symbol.asyncDispose]());
  return socket;
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

describe('a listener', () => {
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
      message: `cannot listen on 127.0.0.1:${port}: address already in use`,
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

  test('HEAD has the length of the body and no body', async () => {
    const port = await freePort();
    await listen(loopback, port, () => textAnswer(503, 'twelve bytes'));
    const answer = await raw(port, 'HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    expect(answer).toMatch(/^HTTP\/1.1 503 /);
    expect(answer).toContain('Content-Length: 12\r\n');
    expect(answer.endsWith('\r\n\r\n')).toBe(true);
  });

  test.each(['//', '//x?y', '*', 'http://[', '/%zz', '/?%zz'])(
    'a target such as %s is no reason to fail',
    async (target) => {
      const port = await freePort();
      await listen(loopback, port, ({ path }) => textAnswer(200, path));
      const answer = await raw(port, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      expect(answer.endsWith(`\r\n\r\n${target.split('?')[0]}`)).toBe(true);
    },
  );

  test('the body of a request is read, up to a limit', async () => {
    const port = await freePort();
    await listen(loopback, port, ({ method, body }) => textAnswer(200, `${method} ${body.length}`));
    const put = (length: number): Promise<string> =>
      raw(
        port,
        `PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\nConnection: close\r\n\r\n${'x'.repeat(length)}`,
      );
    expect(await put(10)).toMatch(/^HTTP\/1.1 200 [^]*PUT 10$/);
    expect(await put(65_537)).toMatch(/^HTTP\/1.1 413 /);
  });

  test('a stream is sent piece by piece, at the pace of the client', async () => {
    const port = await freePort();
    let made = 0;
    async function* pieces(): AsyncGenerator<string> {
      for (; made < 200; made++) yield 'x'.repeat(100_000);
    }
    await listen(loopback, port, () => ({ status: 200, headers: {}, pieces: pieces() }));
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      get({ host: '127.0.0.1', port, agent: false }, resolve).on('error', reject);
    });
    await new Promise((resolve) => setTimeout(resolve, 200)); // the client does not read
    expect(made).toBeLessThan(150);
    let bytes = 0;
    for await (const chunk of response as AsyncIterable<Buffer>) bytes += chunk.length;
    expect(bytes).toBe(20_000_000);
  });

  test('a stream that fails is cut, not ended', async () => {
    const port = await freePort();
    async function* pieces(): AsyncGenerator<string> {
      yield 'some';
      throw new Error('no more');
    }
    await listen(loopback, port, () => ({ status: 200, headers: {}, pieces: pieces() }));
    const answer = await raw(port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(answer.endsWith('\r\n4\r\nsome\r\n')).toBe(true); // without the last piece, of length 0
  });

  test('the signal of a request aborts when its client goes away', async () => {
    const port = await freePort();
    const gone = Promise.withResolvers<void>();
    await listen(loopback, port, async (_, signal) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      gone.resolve();
      return textAnswer(200, '');
    });
    const client = request({ host: '127.0.0.1', port, agent: false });
    client.on('error', () => undefined);
    client.end();
    await new Promise((resolve) => client.once('socket', (socket) => socket.once('connect', resolve)));
    await new Promise((resolve) => setTimeout(resolve, 50));
    client.destroy();
    await gone.promise;
  });
});

describe('a released socket', () => {
  test('frees its port at once, answers connected clients once more, and announces that it closes', async () => {
    const port = await freePort();
    const socket = await listen(loopback, port, () => textAnswer(503, ''));
    await using client = keptAlive(port);
    expect(await client.ask()).toEqual({ status: 503, connection: 'keep-alive' });
    const ended = socket.release();
    const successor = await listen(loopback, port, () => textAnswer(200, ''));
    expect(await client.ask()).toEqual({ status: 503, connection: 'close' });
    await ended;
    expect(await client.ask()).toEqual({ status: 200, connection: 'keep-alive' });
    await successor[Symbol.asyncDispose]();
  });

  test('is ended by disposal, with clients connected', async () => {
    const port = await freePort();
    const socket = await listen(loopback, port, () => textAnswer(200, ''));
    await using client = keptAlive(port);
    await client.ask();
    const ended = socket.release();
    await socket[Symbol.asyncDispose]();
    await ended;
  });
});

/** The usual ones are for minutes and a thousand clients. */
function limits(some: Partial<HttpLimits>): HttpLimits {
  return { connections: 3, connectionsOfNode: 3, requestTime: seconds(60), patience: seconds(60), ...some };
}

describe('limits', () => {
  const impatient = createHttpListener(limits({ patience: millis(200) }));
  async function* endless(): AsyncGenerator<string> {
    for (;;) yield 'x'.repeat(100_000);
  }

  test.each([
    ['a stream', (): HttpReply => ({ status: 200, headers: {}, pieces: endless() })],
    ['a large answer', () => textAnswer(200, 'x'.repeat(20_000_000))],
  ])('a client that takes nothing of %s is cut', async (_, reply) => {
    const port = await freePort();
    const cut = Promise.withResolvers<void>();
    const handler: HttpHandler = (__, signal) => {
      signal.addEventListener('abort', () => cut.resolve(), { once: true });
      return reply();
    };
    await listen(loopback, port, handler, impatient);
    const client = connect(port, '127.0.0.1', () => client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
    client.on('error', () => undefined);
    onTestFinished(() => void client.destroy());
    await cut.promise;
  });

  test('a slow client that goes on reading is not cut', async () => {
    const port = await freePort();
    // More than a busy machine keeps this process waiting.
    const patience = millis(1500);
    await listen(
      loopback,
      port,
      () => textAnswer(200, 'x'.repeat(20_000_000)),
      createHttpListener(limits({ patience })),
    );
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      get({ host: '127.0.0.1', port, agent: false }, resolve).on('error', reject);
    });
    let bytes = 0;
    const begin = performance.now();
    for await (const chunk of response as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes < 12_000_000) await new Promise((resolve) => setTimeout(resolve, 10));
    }
    expect(bytes).toBe(20_000_000);
    expect(performance.now() - begin).toBeGreaterThan(patience);
  });

  test('a handler may take longer than a client', async () => {
    const port = await freePort();
    const late = async (): Promise<HttpReply> => {
      await new Promise((resolve) => setTimeout(resolve, 600));
      return textAnswer(200, 'late');
    };
    await listen(loopback, port, late, impatient);
    expect((await fetchFrom(port, '/')).body).toBe('late');
  });
});

/** Returns the answer to these bytes until the other side closes. */
function raw(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const client = connect(port, '127.0.0.1', () => client.write(text));
    client.on('data', (chunk) => (answer += chunk.toString()));
    client.on('end', () => resolve(answer));
    client.on('error', reject);
  });
}

/** A client that uses one connection for as long as it is let. */
function keptAlive(
  port: number,
): AsyncDisposable & { ask(): Promise<{ status: number; connection: string | undefined }> } {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  return {
    ask: () =>
      new Promise((resolve, reject) => {
        get({ host: '127.0.0.1', port, agent }, (response) => {
          response.resume();
          response.on('end', () =>
            setImmediate(() => resolve({ status: response.statusCode ?? 0, connection: response.headers.connection })),
          );
        }).on('error', reject);
      }),
    [Symbol.asyncDispose]: async () => agent.destroy(),
  };
}
