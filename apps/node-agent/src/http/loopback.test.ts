import { type HttpListener, createHttpListener, proxyHealth } from '@switchyard/core/health';
import {
  nodeName,
  noopEvents,
  noopLogger,
  noopMetrics,
  parseIp,
  type Port,
  seconds,
  systemClock,
} from '@switchyard/core';
import { freePort } from '@switchyard/core/testing';
import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { serveEndpoints } from './endpoints.ts';
import { debugState } from './testing/debug-bench.ts';
import { testMetricsPage, testViews } from './testing/test-views.ts';

const stop = new AbortController();
let served: Promise<void>;
let health: Port;
let metrics: Port;

beforeAll(async () => {
  health = await freePort();
  metrics = await freePort();
  const bound = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let count = 0;
  const listener: HttpListener = {
    listen: async (target, handler) => {
      const socket = await createHttpListener().listen(target, handler);
      bound[count++]?.resolve();
      return socket;
    },
  };
  const address = parseIp('127.0.0.1');
  served = serveEndpoints(
    {
      config: {
        nodeName: nodeName('n1'),
        mode: 'nftables',
        healthz: { address, port: health },
        metricsServer: { address, port: metrics },
        bindAddressHardFail: true,
        enableProfiling: true,
        featureGates: new Map(),
      },
      health: () => proxyHealth({ families: new Map(), timeout: seconds(60), isNodeEligible: true }),
      metricsPage: testMetricsPage,
      views: testViews(),
      debug: debugState(),
      listener,
      events: noopEvents,
      clock: systemClock,
      logger: noopLogger,
      metrics: noopMetrics,
    },
    stop.signal,
  );
  await Promise.race([served, Promise.all(bound.map(({ promise }) => promise))]);
});

afterAll(async () => {
  stop.abort();
  await served;
});

interface Answer {
  readonly status: number;
  readonly type: string | undefined;
  readonly length: string | undefined;
  readonly body: string;
}

function send(port: Port, method: string, path: string, body = ''): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, agent: false }, (response) => {
      let text = '';
      response.on('data', (chunk) => (text += String(chunk)));
      response.on('end', () => {
        const { 'content-type': type, 'content-length': length } = response.headers;
        resolve({ status: response.statusCode ?? 0, type, length, body: text });
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

describe('over real sockets', () => {
  test.each([
    ['GET', '/healthz', /^ok$/],
    ['GET', '/metrics', /^up 1$/m],
    ['GET', '/configz', /KubeProxyConfiguration/],
    ['GET', '/statusz', /^Binary version: 0\.4\.0$/m],
    ['GET', '/flagz', /^v=2$/m],
    ['GET', '/proxyMode', /^nftables$/],
    ['GET', '/debug/forwarding', /shop\/cart:http\/TCP/],
    ['GET', '/debug/explain?from=10.244.9.9&to=10.96.0.10:80/TCP', /^forward to one of 2 endpoints/m],
    ['GET', '/debug/explain?from=10.244.9.9&to=10.96.0.10%3A80%2FTCP&format=json', /"kind":"forward"/],
    ['GET', '/debug/dump', /^# IPv6: x$/m],
    ['GET', '/debug/pprof/', /profile\?seconds=N/],
    ['PUT', '/debug/flags/v', /^successfully set klog\.logging\.verbosity to 4$/m],
  ])('%s %s', async (method, path, expected) => {
    const answer = await send(metrics, method, path, method === 'PUT' ? '4' : '');
    expect(answer.status).toBe(200);
    expect(answer.body).toMatch(expected);
  });

  test.each(['/healthz', '/metrics', '/debug/forwarding', '/debug/dump'])('HEAD %s has no body', async (path) => {
    const whole = await send(metrics, 'GET', path);
    const head = await send(metrics, 'HEAD', path);
    expect(head).toEqual({ ...whole, body: '' });
  });

  test('the stream of /debug/forwarding is valid JSON when it has arrived', async () => {
    const { body } = await send(metrics, 'GET', '/debug/forwarding');
    expect(JSON.parse(body)).toMatchObject({ nodeName: 'n1', families: [{}, {}] });
  });

  test.each(['GET', 'HEAD', 'POST', 'OPTIONS'])('%s of /livez is answered, as load balancers ask', async (method) => {
    expect((await send(health, method, '/livez')).status).toBe(200);
  });

  test('the two servers know nothing of each other', async () => {
    expect((await send(health, 'GET', '/metrics')).status).toBe(404);
    expect((await send(metrics, 'GET', '/livez')).status).toBe(404);
  });
});
