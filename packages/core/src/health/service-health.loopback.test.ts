import { Agent, get } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { noopEvents, noopLogger } from '../base/log.ts';
import type { Clock } from '../base/time.ts';
import type { HealthCheck } from '../model/forwarding/forwarding-table.ts';
import { type IpAddress, type IpFamily, parseIp } from '../model/ip/address.ts';
import type { Port } from '../model/ip/port.ts';
import { noopMetrics } from '../metrics/metrics.ts';
import { nodeName, type ServiceKey, serviceKey } from '../model/records/keys.ts';
import { freePort } from '../testing/free-port.ts';
import { ManualClock } from '../testing/manual-clock.ts';
import { createHttpListener } from './http-listener.ts';
import { ServiceHealth } from './service-health.ts';

const cart = serviceKey('shop', 'cart');
const pay = serviceKey('shop', 'pay');

/** The servers of one family, on the machine's loopback. */
function serviceHealth(
  ipFamily: IpFamily,
  addresses: readonly (IpAddress | 'any')[],
  clock: Clock = new ManualClock(),
): ServiceHealth {
  const health = new ServiceHealth({
    ipFamily,
    nodeName: nodeName('n1'),
    listener: createHttpListener(),
    addresses: () => addresses,
    isProxyLive: () => true,
    clock,
    logger: noopLogger,
    metrics: noopMetrics,
    events: noopEvents,
  });
  onTestFinished(() => health[Symbol.asyncDispose]());
  return health;
}

function checks(service: ServiceKey, port: Port, localReadyEndpoints: number): ReadonlyMap<ServiceKey, HealthCheck> {
  return new Map([[service, { service, port, localReadyEndpoints }]]);
}

interface Answer {
  readonly status: number;
  readonly weight: unknown;
  readonly connection: unknown;
  readonly service: unknown;
}

function ask(
  port: Port,
  { host = '127.0.0.1', agent = false as Agent | false, method = 'GET', headers = {} } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    get({ host, port, agent, method, headers, path: '/some/path?x' }, (response) => {
      let body = '';
      response.on('data', (chunk) => (body += String(chunk)));
      response.on('end', () =>
        setImmediate(() =>
          resolve({
            status: response.statusCode ?? 0,
            weight: response.headers['x-load-balancing-endpoint-weight'],
            connection: response.headers.connection,
            service: body === '' ? undefined : (JSON.parse(body) as { service: { name: string } }).service.name,
          }),
        ),
      );
    }).on('error', reject);
  });
}

test('fact 33: both families answer at one port, each with its own count', async () => {
  const port = await freePort('::');
  await serviceHealth('IPv4', ['any']).sync(checks(cart, port, 2));
  await serviceHealth('IPv6', ['any']).sync(checks(cart, port, 0));
  expect(await ask(port)).toMatchObject({ status: 200, weight: '2' });
  expect(await ask(port, { host: '::1' })).toMatchObject({ status: 503, weight: '0' });
});

test.each([
  ['IPv4', '127.0.0.1', '::1'],
  ['IPv6', '::1', '127.0.0.1'],
] as const)('a server of %s alone is not heard in the other family', async (ipFamily, host, other) => {
  const port = await freePort('::');
  await serviceHealth(ipFamily, ['any']).sync(checks(cart, port, 1));
  expect(await ask(port, { host })).toMatchObject({ status: 200 });
  await expect(ask(port, { host: other })).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});

test.each(['GET', 'HEAD', 'POST', 'OPTIONS'])('%s is answered on any path', async (method) => {
  const port = await freePort('::');
  await serviceHealth('IPv4', [parseIp('127.0.0.1')]).sync(checks(cart, port, 1));
  expect(await ask(port, { method })).toMatchObject({ status: 200, weight: '1' });
});

test('who is connected when the Service goes hears 503 once, then must connect anew and is refused', async () => {
  const port = await freePort('::');
  const health = serviceHealth('IPv4', [parseIp('127.0.0.1')]);
  await health.sync(checks(cart, port, 1));
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  expect(await ask(port, { agent })).toMatchObject({ status: 200, connection: 'keep-alive' });
  await health.sync(new Map());
  expect(await ask(port, { agent })).toMatchObject({ status: 503, weight: '0', connection: 'close' });
  await expect(ask(port, { agent })).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});

test('a port that passes to another Service answers for it at once; the old connection still hears of the old one', async () => {
  const port = await freePort('::');
  const health = serviceHealth('IPv4', [parseIp('127.0.0.1')]);
  await health.sync(checks(cart, port, 1));
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  await ask(port, { agent });
  await health.sync(checks(pay, port, 1));
  expect(await ask(port)).toMatchObject({ status: 200, service: 'pay' });
  expect(await ask(port, { agent })).toMatchObject({ status: 503, service: 'cart' });
  expect(await ask(port, { agent })).toMatchObject({ status: 200, service: 'pay' });
});

test('who checks a Service is known by address and by what it announces, as IPv4 on a socket of both families, too', async () => {
  const port = await freePort('127.0.0.1');
  const clock = new ManualClock();
  const health = serviceHealth('IPv4', ['any'], clock);
  await health.sync(checks(cart, port, 0));
  expect(health.clientsOf(pay)).toBeUndefined();
  await clock.advance(14_999);
  expect(health.clientsOf(cart)).toBeUndefined(); // one may check less often
  await clock.advance(1);
  expect(health.clientsOf(cart)).toEqual([]);
  await ask(port);
  await ask(port);
  expect(health.clientsOf(cart)).toEqual([{ address: '127.0.0.1', failures: 2 }]);
  await ask(port, { headers: { 'Switchyard-Load-Balancer': 'left' } });
  expect(health.clientsOf(cart)).toEqual([{ address: '127.0.0.1', failures: 3, announced: 'left' }]);
});
