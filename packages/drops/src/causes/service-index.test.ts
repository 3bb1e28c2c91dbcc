import { type ForwardingTable, parseIp, type ServiceForwarding, type ServicePortKey } from '@switchyard/core';
import { service, slice, tableOf } from '@switchyard/core/testing';
import { beforeEach, describe, expect, test } from 'vitest';
import { type ServerPlace, ServiceIndex } from './service-index.ts';

const cart = service('shop/cart', { ports: [{ port: 80, nodePort: 30080 }] });
const pay = service('shop/pay', { clusterIps: ['10.96.0.11'], externalIps: ['203.0.113.5'] });
const names = service('shop/names', { clusterIps: ['10.96.0.12'], ports: [{ port: 80, protocol: 'UDP' }] });

const cartOf = (...endpoints: readonly string[]) => slice('shop/cart', { endpoints });
const one = tableOf({ services: [cart], slices: [cartOf('10.244.1.5')] });
const two = tableOf({ services: [cart, pay], slices: [cartOf('10.244.1.5')] });
const changed = tableOf({ services: [cart, pay], slices: [cartOf('10.244.1.6')] });
const without = tableOf({ services: [pay], slices: [] });

let index = new ServiceIndex();
beforeEach(() => {
  index = new ServiceIndex();
});

function at(text: string, protocol: ServerPlace['protocol'] = 'TCP'): ServerPlace {
  const [address = '', port = ''] = text.split(':');
  return { protocol, address: parseIp(address), port: Number(port) };
}

const keysOf = (services: readonly ServiceForwarding[]): readonly string[] => services.map(({ key }) => key);
const serviceAt = (text: string, isLocal = false) => index.serviceAt(at(text), isLocal)?.key;
const ownersOf = (text: string) => keysOf(index.servicesOfEndpoint(at(text)));
const withClusterIp = (text: string) => keysOf(index.servicesWithClusterIp(parseIp(text)));

function follow(...tables: readonly ForwardingTable[]): void {
  for (const table of tables) index.follow(table);
}

test('an index that follows no table finds nothing', () => {
  expect(serviceAt('10.96.0.10:80')).toBeUndefined();
  expect(ownersOf('10.244.1.5:8080')).toEqual([]);
  expect(withClusterIp('10.96.0.10')).toEqual([]);
});

describe('an index follows tables', () => {
  test('a Service is added', () => {
    follow(one);
    expect(serviceAt('10.96.0.11:80')).toBeUndefined();
    follow(two);
    expect(serviceAt('10.96.0.10:80')).toBe('shop/cart:/TCP');
    expect(serviceAt('10.96.0.11:80')).toBe('shop/pay:/TCP');
    expect(serviceAt('203.0.113.5:80')).toBe('shop/pay:/TCP');
  });

  test('an endpoint changes', () => {
    follow(two);
    expect(ownersOf('10.244.1.5:8080')).toEqual(['shop/cart:/TCP']);
    follow(changed);
    expect(ownersOf('10.244.1.5:8080')).toEqual([]);
    expect(ownersOf('10.244.1.6:8080')).toEqual(['shop/cart:/TCP']);
    expect(serviceAt('10.96.0.10:80')).toBe('shop/cart:/TCP');
  });

  test('a Service is removed', () => {
    follow(one, two, changed, without);
    expect(serviceAt('10.96.0.10:80')).toBeUndefined();
    expect(serviceAt('192.0.2.1:30080', true)).toBeUndefined();
    expect(withClusterIp('10.96.0.10')).toEqual([]);
    expect(ownersOf('10.244.1.6:8080')).toEqual([]);
    expect(serviceAt('10.96.0.11:80')).toBe('shop/pay:/TCP');
  });

  test('a Service comes back', () => {
    follow(two, without, two);
    expect(serviceAt('10.96.0.10:80')).toBe('shop/cart:/TCP');
    expect(ownersOf('10.244.1.5:8080')).toEqual(['shop/cart:/TCP']);
  });

  test('the same table comes twice', () => {
    follow(one, one);
    expect(ownersOf('10.244.1.5:8080')).toEqual(['shop/cart:/TCP']);
  });

  test('an answer is of the last table', () => {
    follow(two, changed);
    expect(index.serviceAt(at('10.96.0.10:80'), false)).toBe(changed.services.get('shop/cart:/TCP' as ServicePortKey));
  });

  test('a cluster IP goes to another Service', () => {
    const heir = tableOf({ services: [service('shop/heir', { clusterIps: ['10.96.0.10'] })] });
    follow(one, heir);
    expect(serviceAt('10.96.0.10:80')).toBe('shop/heir:/TCP');
    expect(withClusterIp('10.96.0.10')).toEqual(['shop/heir:/TCP']);
  });
});

test.each([
  ['192.0.2.1:30080', true, 'shop/cart:/TCP'],
  ['192.0.2.1:30080', false, undefined],
  ['192.0.2.1:30081', true, undefined],
  ['192.0.2.1:80', true, undefined],
  ['10.96.0.10:30080', false, undefined],
] as const)('a NodePort answers at %s, an address of this node: %s', (text, isLocal, expected) => {
  follow(two);
  expect(serviceAt(text, isLocal)).toBe(expected);
});

test('a frontend with an address wins over a NodePort at it', () => {
  const winner = service('shop/winner', {
    clusterIps: ['10.96.0.13'],
    externalIps: ['192.0.2.1'],
    ports: [{ port: 30080 }],
  });
  follow(tableOf({ services: [cart, winner] }));
  expect(serviceAt('192.0.2.1:30080', true)).toBe('shop/winner:/TCP');
});

test('a frontend answers to its own port and protocol', () => {
  follow(tableOf({ services: [cart, names] }));
  expect(serviceAt('10.96.0.12:80')).toBeUndefined();
  expect(index.serviceAt(at('10.96.0.12:80', 'UDP'), false)?.key).toBe('shop/names:/UDP');
  expect(serviceAt('10.96.0.10:81')).toBeUndefined();
});

test('a cluster IP has the Service ports of every port', () => {
  const ports = [
    { name: 'http', port: 80 },
    { name: 'dns', port: 53, protocol: 'UDP' as const },
  ];
  follow(tableOf({ services: [service('shop/many', { ports, externalIps: ['203.0.113.5'] })] }));
  expect(withClusterIp('10.96.0.10')).toEqual(['shop/many:dns/UDP', 'shop/many:http/TCP']);
  expect(withClusterIp('203.0.113.5')).toEqual([]);
});

describe('two Services share an endpoint', () => {
  const blue = service('shop/blue', { clusterIps: ['10.96.0.20'] });
  const green = service('shop/green', { clusterIps: ['10.96.0.21'] });
  const endpoints: readonly string[] = ['10.244.1.7'];
  const slices = [slice('shop/blue', { endpoints }), slice('shop/green', { endpoints })];

  test('both are found', () => {
    follow(tableOf({ services: [blue, green], slices }));
    expect(ownersOf('10.244.1.7:8080')).toEqual(['shop/blue:/TCP', 'shop/green:/TCP']);
  });

  test('one is found where the other is removed', () => {
    follow(tableOf({ services: [blue, green], slices }), tableOf({ services: [green], slices }));
    expect(ownersOf('10.244.1.7:8080')).toEqual(['shop/green:/TCP']);
  });
});

test.each([
  ['not ready', { ready: false, serving: false }],
  ['terminating', { terminating: true }],
])('an endpoint that is %s is found', (_, spec) => {
  const endpoints = [{ ip: '10.244.1.8', ...spec }, '10.244.1.9'];
  follow(tableOf({ services: [cart], slices: [slice('shop/cart', { endpoints })] }));
  expect(ownersOf('10.244.1.8:8080')).toEqual(['shop/cart:/TCP']);
  expect(keysOf(index.servicesOfEndpoint(at('10.244.1.8:8080', 'UDP')))).toEqual([]);
});
