import { millis, noopLogger } from '@switchyard/core';
import { ManualClock, MemoryLogger } from '@switchyard/core/testing';
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { metricsRoutes, type MetricsRoutesOptions } from './metrics-routes.ts';
import { inspectorProfiler } from './profiler.ts';
import { router } from './route.ts';
import { ask, debugState, now } from './testing/debug-bench.ts';
import { testMetricsPage, testViews } from './testing/test-views.ts';

function handler(more: Partial<MetricsRoutesOptions> = {}) {
  const options: MetricsRoutesOptions = {
    metricsPage: testMetricsPage,
    views: testViews(),
    debug: debugState(),
    mode: 'nftables',
    enableProfiling: false,
    featureGates: new Map(),
    profiler: async () => inspectorProfiler,
    clock: new ManualClock(now),
    logger: noopLogger,
    ...more,
  };
  return router(metricsRoutes(options), noopLogger);
}

const profiling = handler({ enableProfiling: true });
const text = 'text/plain; charset=utf-8';
const json = 'application/json';
const zpage =
  'Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.';

describe('the metrics server, as kube-proxy', () => {
  test.each([
    ['/healthz', text, 'ok'],
    ['/healthz?verbose', text, '[+]ping ok\nhealthz check passed\n'],
    ['/healthz?verbose&exclude=ping', text, '[+]ping excluded: ok\nhealthz check passed\n'],
    ['/healthz/ping', text, 'ok'],
    ['/proxyMode', text, 'nftables'],
    ['/metrics', 'as usual', '# TYPE up gauge\nup 1\n'],
    ['/configz', json, '{"kubeproxy.config.k8s.io":{"kind":"KubeProxyConfiguration","mode":"nftables"}}\n'],
    ['/flagz', text, `\nkube-proxy flagz\n${zpage}\nconfig=/etc/config.conf\nv=2\n`],
    [
      '/statusz',
      text,
      [
        '',
        'kube-proxy statusz',
        zpage,
        '',
        'Started: Sat Nov 21 08:57:57 UTC 2026',
        'Up: 1 hr 02 min 03 sec',
        'Node.js version: v24.21.0',
        'Binary version: 0.4.0',
        'Emulation version: 1.36',
        'Paths: /configz /debug /flagz /healthz /metrics /proxyMode /statusz',
        '',
      ].join('\n'),
    ],
  ])('GET %s', async (...row) => {
    const [path, type, body] = row;
    const answer = await ask(handler(), path);
    expect(answer).toEqual({
      status: 200,
      headers: {
        'Content-Type': type,
        'X-Content-Type-Options': 'nosniff',
        ...(path === '/metrics' ? { 'Process-Start-Time-Unix': '1795251477' } : {}),
      },
      body,
    });
  });

  test('/metrics is written as its client takes it', async () => {
    const { headers } = await ask(handler(), '/metrics', { headers: { accept: 'application/openmetrics-text' } });
    expect(headers['Content-Type']).toBe('as application/openmetrics-text');
  });

  test('/metrics/slis counts the answers of /healthz, and DELETE starts anew', async () => {
    const server = handler();
    const samples = async (): Promise<readonly string[]> => {
      const { headers, body } = await ask(server, '/metrics/slis');
      expect(headers['Content-Type']).toBe('text/plain; version=0.0.4; charset=utf-8');
      expect(headers['Process-Start-Time-Unix']).toBe('1795251477');
      return body.split('\n').filter((line) => !line.startsWith('#'));
    };
    const start = ['process_start_time_seconds 1795251477', ''];
    expect(await samples()).toEqual(start);
    await ask(server, '/healthz');
    await ask(server, '/healthz?verbose');
    expect(await samples()).toEqual([
      'kubernetes_healthcheck{name="ping",type="healthz"} 1',
      'kubernetes_healthchecks_total{name="ping",status="success",type="healthz"} 2',
      ...start,
    ]);
    expect((await ask(server, '/metrics/slis', { method: 'DELETE' })).status).toBe(200);
    expect(await samples()).toEqual(start);
  });

  test.each([
    ['/statusz', 'ComponentStatusz'],
    ['/flagz', 'ComponentFlagz'],
  ])('%s goes with its gate %s', async (path, gate) => {
    expect((await ask(handler({ featureGates: new Map([[gate, false]]) }), path)).status).toBe(404);
    expect((await ask(handler({ featureGates: new Map([[gate, true]]) }), path)).status).toBe(200);
  });
});

describe('formats of /statusz and /flagz', () => {
  const full = (version: string, kind: string, type = 'json') =>
    `application/${type};g=config.k8s.io;v=${version};as=${kind}`;

  test.each([
    ['nothing', undefined, 200, text],
    ['anything', '*/*', 200, text],
    ['text', 'text/plain', 200, text],
    ['text with a character set', 'text/plain; charset=utf-8', 200, text],
    ['any text', 'text/*;q=0.5', 200, text],
    ['the object', full('v1beta1', 'Statusz'), 200, json],
    ['the object, in YAML', full('v1beta1', 'Statusz', 'yaml'), 200, 'application/yaml'],
    ['the old object', full('v1alpha1', 'Statusz'), 200, json],
    ['an unknown version, else anything', `${full('v9', 'Statusz')},*/*`, 200, text],
    ['the object rather than text', `text/plain;q=0.1,${full('v1beta1', 'Statusz')}`, 200, json],
    ['JSON without a name', 'application/json', 406, text],
    ['an incomplete name', 'application/json;v=v1beta1;g=config.k8s.io', 406, text],
    ['the other object', full('v1beta1', 'Flagz'), 406, text],
    ['the object in CBOR, which we do not have', full('v1beta1', 'Statusz', 'cbor'), 406, text],
    ['something else', 'application/xml', 406, text],
    ['never text', 'text/plain;q=0', 406, text],
  ])('%s', async (...row) => {
    const [, accept, status, type] = row;
    const answer = await ask(handler(), '/statusz', { headers: accept === undefined ? {} : { accept } });
    expect([answer.status, answer.headers['Content-Type']]).toEqual([status, type]);
  });

  test('the objects', async () => {
    const get = async (path: string, version: string, kind: string) =>
      ask(handler(), path, { headers: { accept: full(version, kind) } });
    const statusz = await get('/statusz', 'v1beta1', 'Statusz');
    expect(statusz.headers).not.toHaveProperty('Warning');
    expect(JSON.parse(statusz.body)).toEqual({
      kind: 'Statusz',
      apiVersion: 'config.k8s.io/v1beta1',
      metadata: { name: 'kube-proxy' },
      startTime: '2026-11-21T08:57:57Z',
      uptimeSeconds: 3723,
      goVersion: 'v24.21.0',
      binaryVersion: '0.4.0',
      emulationVersion: '1.36',
      paths: ['/configz', '/debug', '/flagz', '/healthz', '/metrics', '/proxyMode', '/statusz'],
    });
    const flagz = await get('/flagz', 'v1alpha1', 'Flagz');
    expect(flagz.headers['Warning']).toBe('299 - "v1alpha1 is deprecated; use v1beta1"');
    expect(JSON.parse(flagz.body)).toEqual({
      kind: 'Flagz',
      apiVersion: 'config.k8s.io/v1alpha1',
      metadata: { name: 'kube-proxy' },
      flags: { config: '/etc/config.conf', v: '2' },
    });
  });
});

describe('profiling', () => {
  test.each(['/debug/pprof/', '/debug/pprof/profile', '/debug/pprof/heap', '/debug/pprof/cmdline', '/debug/flags/v'])(
    '%s exists only if enabled',
    async (path) => {
      const method = path.endsWith('/v') ? 'PUT' : 'HEAD';
      expect((await ask(handler(), path, { method })).status).toBe(404);
      expect((await ask(profiling, path, { method, body: '2' })).status).toBe(200);
    },
  );

  test('/debug/pprof leads to its index', async () => {
    expect(await ask(profiling, '/debug/pprof')).toMatchObject({
      status: 301,
      headers: { Location: '/debug/pprof/' },
    });
    expect((await ask(profiling, '/debug/pprof/')).body).toContain('profile?seconds=N');
  });

  test('a CPU profile of this very process, as V8 writes it', async () => {
    const path = '/debug/pprof/profile?seconds=0.1&format=v8';
    const answer = ask(profiling, path);
    expect((await ask(profiling, path)).status).toBe(429);
    const { status, headers, body } = await answer;
    expect([status, headers['Content-Disposition']]).toEqual([
      200,
      'attachment; filename="switchyard-agent.cpuprofile"',
    ]);
    const profile = JSON.parse(body) as Record<string, unknown[]> & { startTime: number; endTime: number };
    expect(profile.endTime - profile.startTime).toBeGreaterThan(90_000);
    expect(profile['nodes']?.length).toBeGreaterThan(1);
    expect(profile['samples']?.length).toBeGreaterThan(1);
  });

  test('a heap profile names who allocates, not what', async () => {
    const kept: string[] = [];
    const answer = ask(profiling, '/debug/pprof/heap?seconds=0.2&format=v8');
    await new Promise((resolve) => setTimeout(resolve, 50));
    for (let index = 0; index < 50_000; index++) kept.push(`secret ${index}`);
    const { status, body } = await answer;
    expect(status).toBe(200);
    expect(JSON.parse(body)).toHaveProperty('head.selfSize');
    expect(body).not.toContain('secret');
    expect(kept).toHaveLength(50_000);
  });

  test.each(['profile', 'heap'])('%s is for go tool pprof unless asked otherwise', async (name) => {
    const { status, headers, body } = await ask(profiling, `/debug/pprof/${name}?seconds=0.1`);
    expect([status, headers['Content-Type']]).toEqual([200, 'application/octet-stream']);
    const text = gunzipSync(Buffer.from(body, 'latin1')).toString('latin1');
    expect(text).toContain(name === 'heap' ? 'inuse_space' : 'nanoseconds');
  });

  test('a profile ends when its client goes away', async () => {
    const gone = new AbortController();
    const started = Date.now();
    const profile = inspectorProfiler.cpu({ duration: millis(60_000), format: 'v8' }, gone.signal);
    gone.abort();
    await profile;
    expect(Date.now() - started).toBeLessThan(10_000);
  });

  test.each(['0', '-1', 'abc', '', '601', 'NaN', '1e9'])('seconds=%s is refused', async (value) => {
    expect((await ask(profiling, `/debug/pprof/profile?seconds=${value}`)).status).toBe(400);
  });

  test('another format is refused', async () => {
    expect((await ask(profiling, '/debug/pprof/heap?format=svg')).status).toBe(400);
  });

  test('the command line, separated by NUL', async () => {
    expect((await ask(profiling, '/debug/pprof/cmdline')).body).toBe('node\0main.mjs\0-v=2');
  });

  test.each([
    ['4', 200, 'successfully set klog.logging.verbosity to 4\n', [4]],
    ['abc', 400, 'failed set klog.logging.verbosity abc: not a number\n', []],
    ['', 400, 'failed set klog.logging.verbosity : not a number\n', []],
  ])('PUT of %j to /debug/flags/v', async (...row) => {
    const [body, status, text, expected] = row;
    const set: number[] = [];
    const views = testViews({ setVerbosity: (verbosity) => void set.push(verbosity) });
    const logger = new MemoryLogger();
    const server = handler({ enableProfiling: true, views, logger });
    expect(await ask(server, '/debug/flags/v', { method: 'PUT', body })).toMatchObject({ status, body: text });
    expect(set).toEqual(expected);
    expect(logger.transitions).toHaveLength(expected.length);
    expect((await ask(server, '/debug/flags/v')).status).toBe(405);
  });
});
