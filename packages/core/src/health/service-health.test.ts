import { describe, expect, onTestFinished, test } from 'vitest';
import type { HealthCheck } from '../model/forwarding/forwarding-table.ts';
import { type IpAddress, type IpFamily, parseIp } from '../model/ip/address.ts';
import { parsePort } from '../model/ip/port.ts';
import { type LogFields, type Logger, noopLogger, type RecordedEvent } from '../base/log.ts';
import { noopMetrics } from '../metrics/metrics.ts';
import { nodeName, type ServiceKey, serviceKey } from '../model/records/keys.ts';
import { ManualClock } from '../testing/manual-clock.ts';
import { getRequest, MemoryHttpListener } from '../testing/memory-http-listener.ts';
import { ServiceHealth } from './service-health.ts';

const cart = serviceKey('shop', 'cart');
const pay = serviceKey('shop', 'pay');

function checks(...rows: readonly (readonly [ServiceKey, number, number])[]): ReadonlyMap<ServiceKey, HealthCheck> {
  return new Map(
    rows.map(([service, port, localReadyEndpoints]) => [
      service,
      { service, port: parsePort(port), localReadyEndpoints },
    ]),
  );
}

function bench(addresses: readonly (IpAddress | 'any')[] = ['any'], ipFamily: IpFamily = 'IPv4') {
  const clock = new ManualClock();
  const listener = new MemoryHttpListener();
  const state = { isProxyLive: true, addresses };
  const warnings: LogFields[] = [];
  const events: RecordedEvent[] = [];
  const logger: Logger = { ...noopLogger, warn: (_, fields) => warnings.push(fields ?? {}) };
  const health = new ServiceHealth({
    ipFamily,
    nodeName: nodeName('n1'),
    listener,
    addresses: () => state.addresses,
    isProxyLive: () => state.isProxyLive,
    clock,
    logger,
    metrics: noopMetrics,
    events: { record: (event) => void events.push(event) },
  });
  onTestFinished(() => health[Symbol.asyncDispose]());
  return { clock, listener, health, warnings, events, state };
}

describe('the answer of a healthCheckNodePort', () => {
  test.each([
    ['fact 35: local endpoints and a live proxy: 200', 2, true, 200],
    ['fact 35: no local endpoint: 503', 0, true, 503],
    ['fact 35: a proxy that does not keep up: 503', 2, false, 503],
    ['neither: 503', 0, false, 503],
  ] as const)('%s', async (...row) => {
    const [, localEndpoints, isProxyLive, status] = row;
    const { health, listener, state } = bench();
    state.isProxyLive = isProxyLive;
    await health.sync(checks([cart, 30001, localEndpoints]));
    const answer = listener.get('any-IPv4:30001');
    expect(answer?.status).toBe(status);
    expect(answer?.headers).toEqual({
      'Content-Type': 'application/json',
      'X-Content-Type-Options': 'nosniff',
      'X-Load-Balancing-Endpoint-Weight': String(localEndpoints),
    });
    expect(JSON.parse(answer?.body ?? '')).toEqual({
      service: { namespace: 'shop', name: 'cart' },
      localEndpoints,
      serviceProxyHealthy: isProxyLive,
    });
  });

  test.each(['/', '/healthz', '/anything?else=1'])('is the same for the path %s', async (path) => {
    const { health, listener } = bench();
    await health.sync(checks([cart, 30001, 1]));
    expect(listener.get('any-IPv4:30001', path)).toEqual(listener.get('any-IPv4:30001', '/'));
  });

  test('follows the proxy without a sync', async () => {
    const { health, listener, state } = bench();
    await health.sync(checks([cart, 30001, 1]));
    state.isProxyLive = false;
    expect(listener.get('any-IPv4:30001')?.status).toBe(503);
  });

  test('on a connection that outlives the Service is an explicit 503', async () => {
    const { health, listener } = bench();
    await health.sync(checks([cart, 30001, 1]));
    const open = listener.handler('any-IPv4:30001');
    await health.sync(checks());
    expect(open?.(getRequest('/'), new AbortController().signal)).toMatchObject({
      status: 503,
      headers: { 'X-Load-Balancing-Endpoint-Weight': '0' },
    });
  });
});

describe('ServiceHealth.sync', () => {
  test('opens, updates, moves and closes', async () => {
    const { health, listener } = bench();
    await health.sync(checks([cart, 30001, 1], [pay, 30002, 1]));
    expect(listener.places).toEqual(['any-IPv4:30001', 'any-IPv4:30002']);
    await health.sync(checks([cart, 30003, 0]));
    expect(listener.places).toEqual(['any-IPv4:30003']);
    expect(listener.get('any-IPv4:30003')?.status).toBe(503);
  });

  test('a failure to read the addresses ends neither servers nor the agent; they are read again', async () => {
    const { health, listener, state, warnings, clock } = bench();
    await health.sync(checks([cart, 30001, 1]));
    const { addresses } = state;
    Object.defineProperty(state, 'addresses', {
      configurable: true,
      get: () => {
        throw new Error('EMFILE');
      },
    });
    await health.sync(checks([cart, 30001, 0], [pay, 30002, 1]));
    await clock.advance(5000);
    expect(listener.places).toEqual(['any-IPv4:30001']);
    expect(listener.get('any-IPv4:30001')?.status).toBe(503);
    expect(warnings).toHaveLength(1);
    Object.defineProperty(state, 'addresses', { value: addresses });
    await clock.advance(5000);
    expect(listener.places).toEqual(['any-IPv4:30001', 'any-IPv4:30002']);
  });

  test('leaves an unchanged server open', async () => {
    const { health, listener } = bench();
    await health.sync(checks([cart, 30001, 1]));
    const handler = listener.handler('any-IPv4:30001');
    await health.sync(checks([cart, 30001, 2]));
    expect(listener.handler('any-IPv4:30001')).toBe(handler);
    expect(listener.get('any-IPv4:30001')?.headers['X-Load-Balancing-Endpoint-Weight']).toBe('2');
  });

  test('a port may pass from one Service to another in one sync', async () => {
    const { health, listener, warnings } = bench();
    await health.sync(checks([cart, 30001, 1]));
    await health.sync(checks([pay, 30001, 1]));
    expect(JSON.parse(listener.get('any-IPv4:30001')?.body ?? '')).toMatchObject({ service: { name: 'pay' } });
    expect(warnings).toEqual([]);
  });

  test('fact 33: listens on each NodePort address', async () => {
    const { health, listener } = bench([parseIp('192.0.2.1'), parseIp('192.0.2.2')]);
    await health.sync(checks([cart, 30001, 1]));
    expect(listener.places).toEqual(['192.0.2.1:30001', '192.0.2.2:30001']);
  });

  test('fact 28: follows the NodePort addresses at the next sync', async () => {
    const { health, listener, state } = bench([parseIp('fd00::1')], 'IPv6');
    await health.sync(checks([cart, 30001, 1]));
    state.addresses = [parseIp('fd00::2')];
    await health.sync(checks([cart, 30001, 1]));
    expect(listener.places).toEqual(['[fd00::2]:30001']);
  });

  test('follows the NodePort addresses when told that they changed', async () => {
    const { health, listener, state } = bench([parseIp('192.0.2.1'), parseIp('192.0.2.2')]);
    await health.sync(checks([cart, 30001, 1]));
    const kept = listener.handler('192.0.2.2:30001');
    state.addresses = [parseIp('192.0.2.2'), parseIp('192.0.2.3')];
    await health.followAddresses();
    expect(listener.places).toEqual(['192.0.2.2:30001', '192.0.2.3:30001']);
    expect(listener.handler('192.0.2.2:30001')).toBe(kept);
    expect(listener.get('192.0.2.3:30001')?.status).toBe(200);
  });

  test('listens nowhere when NodePorts answer nowhere', async () => {
    const { health, listener } = bench([]);
    await health.sync(checks([cart, 30001, 1]));
    expect(listener.places).toEqual([]);
  });

  test('disposing closes everything', async () => {
    const { health, listener, clock } = bench();
    listener.setTaken('any-IPv4:30002', true);
    await health.sync(checks([cart, 30001, 1], [pay, 30002, 1]));
    await health[Symbol.asyncDispose]();
    expect(listener.places).toEqual([]);
    expect(clock.sleeping).toBe(0);
  });
});

describe('a port in use', () => {
  test('fact 37: costs only its own Service, and warns once', async () => {
    const { health, listener, warnings } = bench();
    listener.setTaken('any-IPv4:30001', true);
    await health.sync(checks([cart, 30001, 1], [pay, 30002, 1]));
    await health.sync(checks([cart, 30001, 1], [pay, 30002, 1]));
    expect(listener.places).toEqual(['any-IPv4:30002']);
    expect(warnings).toEqual([expect.objectContaining({ service: cart, port: 30001, ipFamily: 'IPv4' })]);
  });

  test('fact 37: is recorded once as a Warning Event on the Service, and again after the next failure', async () => {
    const { health, listener, clock, events } = bench();
    listener.setTaken('any-IPv4:30001', true);
    await health.sync(checks([cart, 30001, 1], [pay, 30002, 1]));
    await clock.advance(20_000);
    const event: RecordedEvent = {
      type: 'Warning',
      reason: 'FailedToStartServiceHealthcheck',
      action: 'Listen',
      regarding: { kind: 'Service', namespace: 'shop', name: 'cart', uid: '' },
      note:
        'node n1 does not answer the healthCheckNodePort of shop/cart, will retry: ' +
        'cannot listen on any-IPv4:30001: address already in use',
    };
    expect(events).toEqual([event]);
    await health.sync(checks());
    await health.sync(checks([cart, 30001, 1]));
    expect(events).toEqual([event, event]);
  });

  test('fact 37: is tried again at the next sync', async () => {
    const { health, listener } = bench();
    listener.setTaken('any-IPv4:30001', true);
    await health.sync(checks([cart, 30001, 1]));
    listener.setTaken('any-IPv4:30001', false);
    await health.sync(checks([cart, 30001, 1]));
    expect(listener.places).toEqual(['any-IPv4:30001']);
  });

  test('is tried again every five seconds without a sync, with the newest count', async () => {
    const { health, listener, clock } = bench();
    listener.setTaken('any-IPv4:30001', true);
    await health.sync(checks([cart, 30001, 1]));
    await clock.advance(5000);
    expect(listener.refused).toHaveLength(2);
    listener.setTaken('any-IPv4:30001', false);
    await clock.advance(5000);
    expect(listener.get('any-IPv4:30001')?.status).toBe(200);
    expect(clock.sleeping).toBe(0);
  });

  test('on one address does not close the others', async () => {
    const { health, listener } = bench([parseIp('192.0.2.1'), parseIp('192.0.2.2')]);
    listener.setTaken('192.0.2.1:30001', true);
    await health.sync(checks([cart, 30001, 1]));
    expect(listener.places).toEqual(['192.0.2.2:30001']);
  });

  test('of a removed Service is not tried again', async () => {
    const { health, listener, clock } = bench();
    listener.setTaken('any-IPv4:30001', true);
    await health.sync(checks([cart, 30001, 1]));
    await health.sync(checks());
    await clock.advance(20_000);
    expect(listener.refused).toHaveLength(1);
  });
});
