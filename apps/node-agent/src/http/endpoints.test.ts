import {
  type LogFields,
  noopLogger,
  noopMetrics,
  nodeName,
  parseIp,
  parsePort,
  type RecordedEvent,
  seconds,
} from '@switchyard/core';
import { proxyHealth } from '@switchyard/core/health';
import { ManualClock, MemoryHttpListener, settle } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import { type EndpointsOptions, serveEndpoints } from './endpoints.ts';
import { debugState } from './testing/debug-bench.ts';
import { testMetricsPage, testViews } from './testing/test-views.ts';

const healthz = { address: parseIp('0.0.0.0'), port: parsePort(10256) };
const metricsServer = { address: parseIp('127.0.0.1'), port: parsePort(10249) };

class Bench implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly listener = new MemoryHttpListener();
  readonly warnings: (LogFields | undefined)[] = [];
  readonly events: RecordedEvent[] = [];
  readonly counted: string[] = [];
  readonly #stop = new AbortController();
  #served: Promise<void> | undefined;

  start(config: Partial<EndpointsOptions['config']> = {}): Promise<void> {
    const defaults = {
      nodeName: nodeName('n1'),
      mode: 'nftables' as const,
      healthz,
      metricsServer,
      bindAddressHardFail: false,
      enableProfiling: false,
      featureGates: new Map<string, boolean>(),
    };
    const { clock, listener } = this;
    this.#served = serveEndpoints(
      {
        config: { ...defaults, ...config },
        health: () => proxyHealth({ families: new Map(), timeout: seconds(60), isNodeEligible: false }),
        metricsPage: testMetricsPage,
        views: testViews(),
        debug: debugState(),
        listener,
        events: { record: (event) => void this.events.push(event) },
        clock,
        logger: { ...noopLogger, warn: (_, fields) => void this.warnings.push(fields) },
        metrics: {
          ...noopMetrics,
          add: (name, labels) => void this.counted.push(`${name} ${Object.values(labels).join()}`),
        },
      },
      this.#stop.signal,
    );
    this.#served.catch(() => undefined);
    return this.#served;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#served?.catch(() => undefined);
  }
}

describe('both servers', () => {
  test('listen where they should, and end with the signal', async () => {
    const bench = new Bench();
    void bench.start();
    await settle();
    expect(bench.listener.places).toEqual(['127.0.0.1:10249', 'any-both:10256']);
    await bench[Symbol.asyncDispose]();
    expect(bench.listener.places).toEqual([]);
    expect(bench.clock.sleeping).toBe(0);
  });

  test('are not there without an address', async () => {
    await using bench = new Bench();
    await bench.start({ healthz: undefined, metricsServer: undefined });
    expect(bench.listener.places).toEqual([]);
  });

  test('each answer of /healthz and /livez is counted by its code', async () => {
    await using bench = new Bench();
    void bench.start();
    await settle();
    for (const path of ['/healthz', '/livez', '/livez', '/']) bench.listener.get('any-both:10256', path);
    expect(bench.counted).toEqual([
      'kubeproxy_proxy_healthz_total 503',
      'kubeproxy_proxy_livez_total 200',
      'kubeproxy_proxy_livez_total 200',
    ]);
  });

  test('only the metrics server shows Services, only the health server health', async () => {
    await using bench = new Bench();
    void bench.start();
    await settle();
    expect(bench.listener.get('any-both:10256', '/debug/explain')?.status).toBe(404);
    expect(bench.listener.get('127.0.0.1:10249', '/livez')?.status).toBe(404);
    expect(bench.listener.get('127.0.0.1:10249', '/healthz')?.status).toBe(200);
  });
});

const servers = [
  ['healthz', 'any-both:10256', '--healthz-bind-address', 'FailedToStartProxierHealthcheck'],
  ['metrics', '127.0.0.1:10249', '--metrics-bind-address', 'FailedToStartMetricServer'],
] as const;

describe.each(servers)('fact 78: a port in use, of the %s server', (...server) => {
  const [name, place, flag, reason] = server;
  const event = {
    type: 'Warning',
    reason,
    action: 'StartKubeProxy',
    regarding: { kind: 'Node', namespace: '', name: 'n1', uid: '' },
    note: `cannot listen on ${place}: address already in use`,
  };

  test('is tried again every five seconds, with one warning and one Event on the Node', async () => {
    await using bench = new Bench();
    bench.listener.setTaken(place, true);
    void bench.start();
    await bench.clock.advance(9000);
    expect(bench.listener.refused).toEqual([place, place]);
    expect(bench.listener.places).toHaveLength(1); // the other one
    bench.listener.setTaken(place, false);
    await bench.clock.advance(1000);
    expect(bench.listener.places).toHaveLength(2);
    expect(bench.warnings).toMatchObject([
      { advice: expect.stringMatching(`if kube-proxy still runs on this node, stop it.* another ${flag}$`) as string },
    ]);
    expect(bench.events).toEqual([event]);
  });

  test('ends everything with bindAddressHardFail: an Event, and an error that says what to do', async () => {
    await using bench = new Bench();
    bench.listener.setTaken(place, true);
    const served = bench.start({ bindAddressHardFail: true });
    await expect(served).rejects.toMatchObject({
      name: 'HostError',
      code: 'host.hardFail',
      message:
        `the ${name} server cannot listen on ${place}: address already in use, ` +
        `and bindAddressHardFail is set: free the port or give another ${flag}`,
    });
    expect(bench.events).toEqual([event]);
    expect(bench.listener.refused).toHaveLength(1);
    expect(bench.listener.places).toEqual([]); // the other one, too
    expect(bench.warnings).toEqual([]);
  });

  test('does not hold up a stop', async () => {
    const bench = new Bench();
    bench.listener.setTaken(place, true);
    void bench.start();
    await settle();
    await bench[Symbol.asyncDispose]();
    expect(bench.clock.sleeping).toBe(0);
  });
});
