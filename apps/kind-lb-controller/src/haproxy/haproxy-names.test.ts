import { parsePort, serviceKey } from '@switchyard/core';
import { expect, test } from 'vitest';
import { backendName, type BackendOwner, parseBackendName, safeName } from './haproxy-names.ts';

const id = { cluster: 'my.kind-2', service: serviceKey('default', 'web') };
const port = { kind: 'port', port: parsePort(80) } as const;

test.each<[name: string, owner: BackendOwner]>([
  ['my.kind-2:default:web:80:ipv4', { id, use: port, ipFamily: 'IPv4', isLast: false }],
  ['my.kind-2:default:web:80:ipv6:last', { id, use: port, ipFamily: 'IPv6', isLast: true }],
  ['my.kind-2:default:web:check:ipv6', { id, use: { kind: 'check' }, ipFamily: 'IPv6', isLast: false }],
])('%s is made from what it is read as', (name, owner) => {
  expect(backendName(owner)).toBe(name);
  expect(parseBackendName(name)).toEqual(owner);
});

test.each([
  'GLOBAL',
  'c:a:b',
  'c:a:b:80',
  'c:a:b:0:ipv4',
  'c:a:b:80:ipx',
  'c:a:b:80:ipv4:first',
  'c:a:b:80:ipv4:last:c',
  'c:a:b::ipv4',
])('%s is not the name of an own backend', (name) => {
  expect(parseBackendName(name)).toBeUndefined();
});

test('names cannot bring lines or words of their own into the configuration', () => {
  expect(safeName('x\n    server evil 1.2.3.4:80')).toBe('x_____server_evil_1.2.3.4:80');
  expect(safeName('ip-10-0-0-1.eu-west-1.compute.internal')).toBe('ip-10-0-0-1.eu-west-1.compute.internal');
});
