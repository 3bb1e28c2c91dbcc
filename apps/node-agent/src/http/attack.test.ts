import { createHttpListener } from '@switchyard/core/health';
import { noopLogger, parseIp, systemClock } from '@switchyard/core';
import { freePort } from '@switchyard/core/testing';
import { once } from 'node:events';
import { get } from 'node:http';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { metricsRoutes } from './metrics-routes.ts';
import { inspectorProfiler } from './profiler.ts';
import { router } from './route.ts';
import { debugState } from './testing/debug-bench.ts';
import { testViews } from './testing/test-views.ts';

const request = 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n';

test('scrapers that pipeline and do not read cost a few pages, and the next one is served', async () => {
  let made = 0;
  async function* pieces(): AsyncGenerator<string> {
    made++;
    yield 'x'.repeat(100_000);
  }
  const routes = metricsRoutes({
    metricsPage: { metricsText: async () => ({ contentType: 'text/plain', pieces: pieces() }) },
    views: testViews(),
    debug: debugState(),
    mode: 'nftables',
    enableProfiling: false,
    featureGates: new Map(),
    profiler: async () => inspectorProfiler,
    clock: systemClock,
    logger: noopLogger,
  });
  const port = await freePort();
  const target = { ipFamily: 'IPv4', address: parseIp('127.0.0.1'), port } as const;
  const server = await createHttpListener().listen(target, router(routes, noopLogger));
  onTestFinished(() => server[Symbol.asyncDispose]());
  const open = async (): Promise<Socket> => {
    const client = connect(port, '127.0.0.1').on('error', () => undefined);
    onTestFinished(() => void client.destroy());
    await once(client, 'connect');
    client.write(request.repeat(300));
    return client;
  };
  await Promise.all(Array.from({ length: 40 }, open));
  const status = await new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path: '/metrics', agent: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode));
    }).on('error', reject);
  });
  expect(status).toBe(200);
  expect(made).toBeLessThan(200); // as many as fit into the kernel's buffers, of 12,001 requests
});
